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
#include <unistd.h>

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
    int done;                /* gets one byte when a group is synced */
};

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
            while (write(group->done, "", 1) < 0 && errno == EINTR)
                ;
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
