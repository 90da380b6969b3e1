/* What the tests need of HIP (hip.c). */
#pragma once

#include <stddef.h>

int hipDeviceSynchronize(void);
int hipStreamSynchronize(void* stream);
int hipMemcpy(void* to, const void* from, size_t bytes, int kind);
void stand_in_hip_kernel(double seconds);
