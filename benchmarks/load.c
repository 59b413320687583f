/* Small file work that reports its own time, so that neither side's start counts.
 *
 *   load cycle N         N times: create, write 4 KB, read, rename, unlink; median microseconds a cycle, then
 *                        of each step
 *   load read FOLDER N   read FOLDER/0 ... FOLDER/(N-1) whole, twice; mean microseconds a file of each pass
 *   load make FOLDER N   make N files of 2 KB; the monotonic clock, in nanoseconds, when done
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SIZE_BYTES = 4096, STEPS = 5 };
static char buffer[SIZE_BYTES];

static void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_us(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, ascending);
    return values[count / 2];
}

static int open_or_fail(const char *path, int flags) {
    int file = open(path, flags | O_CLOEXEC, 0644);
    if (file < 0) fail(path);
    return file;
}

static void cycle(int count) {
    double *taken[STEPS + 1];
    for (int step = 0; step <= STEPS; step++) {
        taken[step] = calloc((size_t)count, sizeof(double));
        if (!taken[step]) fail("calloc");
    }
    for (int turn = 0; turn < count; turn++) {
        char first[64], second[64];
        double at[STEPS + 1];
        snprintf(first, sizeof first, "first-%d", turn);
        snprintf(second, sizeof second, "second-%d", turn);
        at[0] = now_us();
        int file = open_or_fail(first, O_CREAT | O_EXCL | O_WRONLY);
        at[1] = now_us();
        if (write(file, buffer, SIZE_BYTES) != SIZE_BYTES) fail("write");
        if (close(file)) fail("close");
        at[2] = now_us();
        file = open_or_fail(first, O_RDONLY);
        if (read(file, buffer, SIZE_BYTES) != SIZE_BYTES) fail("read");
        close(file);
        at[3] = now_us();
        if (rename(first, second)) fail("rename");
        at[4] = now_us();
        if (unlink(second)) fail("unlink");
        at[5] = now_us();
        taken[0][turn] = at[STEPS] - at[0];
        for (int step = 0; step < STEPS; step++) taken[step + 1][turn] = at[step + 1] - at[step];
    }
    for (int step = 0; step <= STEPS; step++) printf("%.2f ", median(taken[step], count));
    printf("\n");
}

static void read_all(const char *folder, int count) {
    if (chdir(folder)) fail(folder);
    for (int pass = 0; pass < 2; pass++) {
        double began = now_us();
        for (int turn = 0; turn < count; turn++) {
            char name[32];
            snprintf(name, sizeof name, "%d", turn);
            int file = open_or_fail(name, O_RDONLY);
            while (read(file, buffer, SIZE_BYTES) > 0) {}
            close(file);
        }
        printf("%.3f ", (now_us() - began) / count);
    }
    printf("\n");
}

static void make(const char *folder, int count) {
    struct timespec at;
    if (mkdir(folder, 0755) || chdir(folder)) fail(folder);
    for (int turn = 0; turn < count; turn++) {
        char name[32];
        snprintf(name, sizeof name, "%d", turn);
        int file = open_or_fail(name, O_CREAT | O_EXCL | O_WRONLY);
        if (write(file, buffer, SIZE_BYTES / 2) != SIZE_BYTES / 2) fail("write");
        if (close(file)) fail("close");
    }
    clock_gettime(CLOCK_MONOTONIC, &at);
    printf("%lld%09ld\n", (long long)at.tv_sec, at.tv_nsec);
}

int main(int words, char **word) {
    memset(buffer, 'x', sizeof buffer);
    if (words == 3 && !strcmp(word[1], "cycle")) cycle(atoi(word[2]));
    else if (words == 4 && !strcmp(word[1], "read")) read_all(word[2], atoi(word[3]));
    else if (words == 4 && !strcmp(word[1], "make")) make(word[2], atoi(word[3]));
    else return 2;
    return 0;
}
