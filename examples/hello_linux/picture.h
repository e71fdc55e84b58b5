/* A hand-written three of ../digits, 0 to 16. */
#ifndef HELLO_LINUX_PICTURE_H_
#define HELLO_LINUX_PICTURE_H_

enum { kPixels = 64, kClasses = 10, kBrightest = 16 };

static const unsigned char kPicture[kPixels] = {0, 1, 7, 13, 16, 13, 0, 0, 0, 7, 16, 16, 16, 14, 0, 0,
                                                0, 1, 7, 16, 10, 1,  0, 0, 0, 1, 16, 15, 0,  0,  0, 0,
                                                0, 0, 8, 15, 14, 3,  0, 0, 0, 0, 0,  1,  14, 15, 3, 0,
                                                0, 0, 1, 5,  13, 16, 7, 0, 0, 0, 8,  15, 10, 6,  0, 0};

#endif /* HELLO_LINUX_PICTURE_H_ */
