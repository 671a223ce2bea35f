/*
 * Threads that sync the files of one group.
 *
 * Files that are synced at the same time share a commit of the file system's journal. The threads never take
 * the interpreter's lock, so that neither a begin nor an end of a group waits for the thread that has it.
 */
#ifndef TXNKAFKA_SYNC_THREADS_H
#define TXNKAFKA_SYNC_THREADS_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/eventfd.h>
#endif

#define SYNC_THREADS 8

struct sync_group {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t threads[SYNC_THREADS];
    int started;             /* threads */
    int closed;
    const int *descriptors;  /* of the group, count of them */
    int *errors;             /* 0, or the errno of its sync */
    int count, next, left;   /* the next one to take, and how many are not synced */
    int readable, done;      /* ends of a pipe, or an eventfd: readable when a group is synced */
};

#ifdef __linux__
typedef uint64_t sync_signal; /* an eventfd takes no page and one lock */
#else
typedef char sync_signal;
#endif

/* Opens the descriptors; 0, or an errno. */
static int open_sync_signal(struct sync_group *group) {
#ifdef __linux__
    group->readable = group->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return group->readable < 0 ? errno : 0;
#else
    int ends[2];
    if (pipe(ends) != 0)
        return errno;
    group->readable = ends[0];
    group->done = ends[1];
    for (int i = 0; i < 2; i++)
        if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) < 0)
            return errno;
    return fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 ? errno : 0;
#endif
}

static void close_sync_signal(struct sync_group *group) {
    if (group->readable >= 0)
        close(group->readable);
    if (group->done >= 0 && group->done != group->readable)
        close(group->done);
    group->readable = group->done = -1;
}

static void send_sync_signal(struct sync_group *group) {
    sync_signal one = 1;
    while (write(group->done, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* Whether the group was synced since the last call. */
static int take_sync_signal(struct sync_group *group) {
    sync_signal one;
    ssize_t count;
    do
        count = read(group->readable, &one, sizeof one);
    while (count < 0 && errno == EINTR);
    return count > 0;
}

static int sync_descriptor(int descriptor) {
    int result;
    do
#ifdef __APPLE__
        result = fcntl(descriptor, F_FULLFSYNC); /* fsync leaves the data in the drive's cache */
#else
        result = fdatasync(descriptor);
#endif
    while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

static void *sync_files(void *argument) {
    struct sync_group *group = (struct sync_group *)argument;
    int number, error;
    pthread_mutex_lock(&group->mutex);
    for (;;) {
        while (group->next == group->count && !group->closed)
            pthread_cond_wait(&group->changed, &group->mutex);
        if (group->closed)
            break;
        number = group->next++;
        pthread_mutex_unlock(&group->mutex);
        error = sync_descriptor(group->descriptors[number]);
        pthread_mutex_lock(&group->mutex);
        group->errors[number] = error;
        if (--group->left == 0)
            send_sync_signal(group);
    }
    pthread_mutex_unlock(&group->mutex);
    return NULL;
}

/* Starts the threads, which leave signals to others; an errno when there is none. */
static int start_sync_threads(struct sync_group *group) {
    sigset_t all, before;
    int error = 0;
    pthread_mutex_init(&group->mutex, NULL);
    pthread_cond_init(&group->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (group->started < SYNC_THREADS && error == 0) {
        error = pthread_create(&group->threads[group->started], NULL, sync_files, group);
        group->started += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return group->started ? 0 : error;
}

/* The arrays must stay until the group is synced. */
static void begin_syncs(struct sync_group *group, const int *descriptors, int *errors, int count) {
    pthread_mutex_lock(&group->mutex);
    group->descriptors = descriptors;
    group->errors = errors;
    group->next = 0;
    group->left = group->count = count;
    pthread_mutex_unlock(&group->mutex);
    for (int i = 0; i < count && i < SYNC_THREADS; i++) /* the others need not wake */
        pthread_cond_signal(&group->changed);
}

/* Waits for syncs under way; what was not begun is not synced. */
static void close_sync_threads(struct sync_group *group) {
    pthread_mutex_lock(&group->mutex);
    group->closed = 1;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->mutex);
    for (int i = 0; i < group->started; i++)
        pthread_join(group->threads[i], NULL);
    group->started = 0;
}

#endif
