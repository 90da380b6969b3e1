// A program that was built with -fsanitize=address ends at once where another library comes before the sanitizer's: the
// check is for libraries that bring functions of the sanitizer's own (malloc). The preload has none of them.
//
// The sanitizer's run-time library asks this function for its options before it checks. A program's own function of
// that name comes before ours; ASAN_OPTIONS=verify_asan_link_order=0 does the same then.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "verify_asan_link_order=0";
}
