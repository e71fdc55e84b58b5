/* Instructions of each kernel of the model, where the program is linked with --wrap=SYMBOL for the kernels that case.h
 * lists. Calls outside of the model's runs are not counted. */
#ifndef QUERNEL_KERNEL_COUNTS_H_
#define QUERNEL_KERNEL_COUNTS_H_

#include <stdint.h>

/* Before the run that counts. */
void forget_kernel_counts(void);

/* After it: "kernel_NUMBER", instructions and calls of each kernel; at last "empty_calls", the same of calls of a
 * function that does nothing: what counting a call takes. */
void print_kernel_counts(void (*print_line)(const char* name, uint64_t instructions, uint64_t calls));

#endif /* QUERNEL_KERNEL_COUNTS_H_ */
