/* Names processes so that a name is never used twice, and finds out whether a named process has ended. */
#ifndef HALFCARD_PROCESS_H
#define HALFCARD_PROCESS_H

#include <stdint.h>

/* The pid (22 bits), the start time (26 bits) and the program that it executes (16 bits; 0: unknown).
 *
 * The pid alone is used again. The start time stays the same when a process executes another program, which ends its
 * CUDA contexts and all threads but one: such a process counts as another one. */
typedef uint64_t process_name;

process_name process_self(void);

unsigned process_pid(process_name name);

/* Returns whether the process has ended or executes another program; 0 where that cannot be known. */
int process_is_gone(process_name name);

/* Returns the name that the text of /proc/PID/stat gives; 0 where the process has ended or the text is broken. */
process_name process_of_stat(const char *text);

void process_sleep_us(unsigned microseconds);

/* Returns a number that changes ten times a second. */
uint64_t process_moment(void);

#endif
