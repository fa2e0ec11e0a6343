/* Links with the oldest versions of libc's functions, so that the library loads on every glibc since 2.17. */
#ifdef __x86_64__
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#elif defined __aarch64__
__asm__(".symver dlopen, dlopen@GLIBC_2.17");
__asm__(".symver dlsym, dlsym@GLIBC_2.17");
#endif
