/* Says that it ran, in functions that every libc has. */
#include <unistd.h>

int main(void) { return write(1, "ran\n", 4) != 4; }
