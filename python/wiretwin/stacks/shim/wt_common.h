/* What the shims that find their peers by themselves share: options, limits, errors, meeting.
 *
 * The ranks meet in a directory of their launch: each publishes one file, written under another name and
 * renamed so that it is seen whole, and reads the others'. Every wait has a limit. */
#ifndef WT_COMMON_H
#define WT_COMMON_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "wiretwin_shim.h"

#define WT_ERROR_BYTES 512

typedef struct {
    int32_t rank, size;
    const char *directory;
    double limit_s;
    char *lines; /* the options, each line ended by a NUL, the last by two */
} wt_options;

__attribute__((format(printf, 3, 4), unused)) static int wt_say(char *text, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, size, format, arguments);
    va_end(arguments);
    return WT_TRANSPORT;
}

/* The value of an option, or `otherwise`. */
__attribute__((unused)) static const char *wt_option(const wt_options *options, const char *key,
                                                     const char *otherwise) {
    size_t length = strlen(key);
    for (const char *line = options->lines; *line; line += strlen(line) + 1)
        if (strncmp(line, key, length) == 0 && line[length] == '=') return line + length + 1;
    return otherwise;
}

/* Options that a library reports may hold anything: what JSON does not take as it is becomes a blank. */
__attribute__((unused)) static const char *wt_json(const char *text, char *into, size_t size) {
    size_t at = 0;
    for (; *text && at + 1 < size; text++)
        into[at++] = (unsigned char)*text < ' ' || *text == '"' || *text == '\\' ? ' ' : *text;
    into[at] = 0;
    return into;
}

/* Reads what is there for every layer, and refuses any other key than those of `own`, which ends in NULL. */
__attribute__((unused)) static int wt_read_options(const char *text, const char *const *own, wt_options *options,
                                                   char *error, size_t error_size) {
    size_t length = strlen(text);
    options->lines = calloc(1, length + 2);
    if (!options->lines) return wt_say(error, error_size, "no memory for the options");
    memcpy(options->lines, text, length);
    for (size_t at = 0; at < length; at++)
        if (options->lines[at] == '\n') options->lines[at] = 0;
    static const char *const common[] = {"rank", "size", "directory", "limit_s", NULL};
    for (const char *line = options->lines; *line; line += strlen(line) + 1) {
        size_t key = strcspn(line, "=");
        int known = 0;
        for (const char *const *name = common; *name; name++)
            known |= strncmp(*name, line, key) == 0 && !(*name)[key];
        for (const char *const *name = own; *name; name++)
            known |= strncmp(*name, line, key) == 0 && !(*name)[key];
        if (!known) return wt_say(error, error_size, "options: unknown key %.*s", (int)key, line);
    }
    const char *rank = wt_option(options, "rank", NULL), *size = wt_option(options, "size", NULL);
    options->directory = wt_option(options, "directory", NULL);
    options->limit_s = atof(wt_option(options, "limit_s", "60"));
    if (!rank || !size || !options->directory)
        return wt_say(error, error_size, "options: %s is missing; rank, size and directory are needed",
                      !rank ? "rank" : !size ? "size" : "directory");
    options->rank = atoi(rank);
    options->size = atoi(size);
    if (options->size < 1 || options->rank < 0 || options->rank >= options->size)
        return wt_say(error, error_size, "options: rank=%s is not allowed: 0 to %d", rank, options->size - 1);
    if (!(options->limit_s > 0)) return wt_say(error, error_size, "options: limit_s must be above 0");
    return WT_OK;
}

__attribute__((unused)) static double wt_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* How long the ranks may take to meet: half of a launch's life, at most 20 s. */
__attribute__((unused)) static double wt_meeting_s(const wt_options *options) {
    return options->limit_s * 0.5 < 20.0 ? options->limit_s * 0.5 : 20.0;
}

__attribute__((unused)) static void wt_pause_ms(void) {
    struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
}

/* Shows `bytes` to the other ranks under `name`. */
__attribute__((unused)) static int wt_publish(const wt_options *options, const char *name, const void *data,
                                              size_t bytes, char *error, size_t error_size) {
    char path[PATH_MAX], hidden[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", options->directory, name);
    if (snprintf(hidden, sizeof hidden, "%s/.%s", options->directory, name) >= (int)sizeof hidden)
        return wt_say(error, error_size, "directory: the path is too long");
    int file = open(hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0) return wt_say(error, error_size, "%s: %s", hidden, strerror(errno));
    const char *from = data;
    while (bytes > 0) {
        ssize_t wrote = write(file, from, bytes);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0) {
            wt_say(error, error_size, "%s: %s", hidden, strerror(errno));
            close(file);
            return WT_TRANSPORT;
        }
        from += wrote;
        bytes -= (size_t)wrote;
    }
    close(file);
    if (rename(hidden, path) != 0) return wt_say(error, error_size, "%s: %s", path, strerror(errno));
    return WT_OK;
}

/* Reads what another rank shows under `name`, which the caller frees; waits until `deadline`. */
__attribute__((unused)) static int wt_look_up(const wt_options *options, const char *name, double deadline,
                                              char **data, size_t *bytes, char *error, size_t error_size) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", options->directory, name);
    int file;
    while ((file = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
        if (errno != ENOENT) return wt_say(error, error_size, "%s: %s", path, strerror(errno));
        if (wt_now() > deadline) {
            wt_say(error, error_size, "%s: nobody published it in time", path);
            return WT_TIMED_OUT;
        }
        wt_pause_ms();
    }
    struct stat about;
    ssize_t got = -1;
    *data = NULL;
    if (fstat(file, &about) == 0 && (*data = malloc((size_t)about.st_size + 1)))
        got = read(file, *data, (size_t)about.st_size);
    close(file);
    if (got != about.st_size) {
        free(*data);
        return wt_say(error, error_size, "%s: cannot be read", path);
    }
    (*data)[got] = 0;
    *bytes = (size_t)got;
    return WT_OK;
}

#endif
