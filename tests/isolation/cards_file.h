/* The cards of the stand-in driver: an array of `card`, in the file RUN_FOLDER/cards. */
#define CARDS 2
#define VERSION 12080
#define CONTEXT_BYTES (100ULL << 20)
