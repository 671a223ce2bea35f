/*
 * Handles mapped bytes that are no longer in their file.
 *
 * Reading a page of a mapping behind the end of its file raises SIGBUS, which ends the process. Therefore
 * every mapped region is registered here, and the handler of SIGBUS maps zero pages over the rest of the
 * accessed region, marks it as lost, and returns: the access is repeated and reads zero. A reader of the
 * region checks the mark before it uses the bytes. Any other SIGBUS is passed to the previous handler.
 *
 * The handler calls only sigaction, fstat, mmap and raise, and takes neither locks nor memory. Regions are
 * slots of an append-only list of blocks; a slot has a version that is odd while it is being changed, so the
 * handler never reads half of a change. The slot of a region does not change while it is read, because its
 * reader owns it.
 */
#ifndef TXNKAFKA_MAPPING_H
#define TXNKAFKA_MAPPING_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

#define BLOCK_REGIONS 128
#define KNOWN_ACTIONS 16

struct mapped_region {
    uintptr_t begin, end; /* whole pages */
    unsigned version;     /* odd while the others are being changed */
    int taken;
    int lost; /* some of its pages were replaced by zeros */
    int descriptor;
};

struct region_block {
    struct mapped_region regions[BLOCK_REGIONS];
    struct region_block *next;
};

struct known_action { /* a previous action of SIGBUS; written once */
    int state;        /* 0 free, 1 being written, 2 written */
    struct sigaction action;
};

static struct region_block first_block;
static struct known_action known_actions[KNOWN_ACTIONS];
static int previous_action;
static uintptr_t passing_on; /* the thread that runs the previous handler */
static uintptr_t page_bytes;

#define get(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define set(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#define was_swapped(p, from, to) \
    __atomic_compare_exchange_n(p, from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

static inline uintptr_t whole_pages(uintptr_t size) {
    return (size + page_bytes - 1) & ~(page_bytes - 1);
}

/* Change a slot that the caller has taken. */
static void describe(struct mapped_region *region, uintptr_t begin, uintptr_t end, int descriptor) {
    set(&region->version, region->version + 1);
    set(&region->begin, begin);
    set(&region->end, end);
    set(&region->lost, 0);
    set(&region->descriptor, descriptor);
    set(&region->version, region->version + 1);
}

/* Read a slot; return 0 when it is free or being changed. */
static int read_region(struct mapped_region *region, uintptr_t *begin, uintptr_t *end, int *descriptor) {
    unsigned version = get(&region->version);
    *begin = get(&region->begin);
    *end = get(&region->end);
    *descriptor = get(&region->descriptor);
    return !(version & 1) && *begin != *end && get(&region->version) == version;
}

/* Take a free slot; return NULL when there is no memory for another block. */
static struct mapped_region *free_region(void) {
    struct region_block *block = &first_block, *next, *made;
    for (;; block = next) {
        for (int i = 0; i < BLOCK_REGIONS; i++) {
            int taken = 0;
            if (was_swapped(&block->regions[i].taken, &taken, 1))
                return &block->regions[i];
        }
        next = get(&block->next);
        if (next == NULL) {
            made = (struct region_block *)calloc(1, sizeof *made);
            if (made == NULL)
                return NULL;
            if (was_swapped(&block->next, &next, made))
                next = made;
            else
                free(made);
        }
    }
}

static int put_zeros(struct mapped_region *region, uintptr_t begin, uintptr_t end) {
    set(&region->lost, 1);
    int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    return mmap((void *)begin, end - begin, PROT_READ, how, -1, 0) != MAP_FAILED;
}

/* Map zeros over the rest of the region that contains ``address``; return 0 when no region does. */
static int cover_address(uintptr_t address) {
    uintptr_t begin, end;
    int descriptor;
    for (struct region_block *block = &first_block; block != NULL; block = get(&block->next))
        for (int i = 0; i < BLOCK_REGIONS; i++)
            if (read_region(&block->regions[i], &begin, &end, &descriptor) && begin <= address &&
                address < end)
                return put_zeros(&block->regions[i], address & ~(page_bytes - 1), end);
    return 0;
}

/* Map zeros after the ends of all files that became shorter; return 0 when none did. */
static int cover_short_files(void) {
    uintptr_t begin, end, there;
    int descriptor, found = 0;
    struct stat status;
    for (struct region_block *block = &first_block; block != NULL; block = get(&block->next))
        for (int i = 0; i < BLOCK_REGIONS; i++) {
            if (!read_region(&block->regions[i], &begin, &end, &descriptor) ||
                fstat(descriptor, &status) != 0)
                continue;
            there = whole_pages((uintptr_t)status.st_size);
            if (there < end - begin && !get(&block->regions[i].lost))
                found |= put_zeros(&block->regions[i], begin + there, end);
        }
    return found;
}

static void end_the_process(int number, int raised) {
    struct sigaction standard;
    memset(&standard, 0, sizeof standard);
    standard.sa_handler = SIG_DFL;
    sigaction(number, &standard, NULL);
    if (raised)
        raise(number); /* otherwise the access is repeated */
}

static void pass_on(int number, siginfo_t *info, void *context, int raised) {
    const struct sigaction *previous = &known_actions[get(&previous_action)].action;
    int takes_info = (previous->sa_flags & SA_SIGINFO) != 0;
    uintptr_t self = (uintptr_t)pthread_self();
    if (!takes_info && previous->sa_handler == SIG_IGN && raised)
        return;
    /* faulthandler calls the handler it replaced, which may be this one */
    if (get(&passing_on) == self ||
        (!takes_info && (previous->sa_handler == SIG_DFL || previous->sa_handler == SIG_IGN))) {
        end_the_process(number, raised);
        return;
    }
    set(&passing_on, self);
    if (takes_info)
        previous->sa_sigaction(number, info, context);
    else
        previous->sa_handler(number);
    set(&passing_on, 0);
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
    int saved = errno;
    int raised = info->si_code <= 0 || info->si_code == SI_USER;
    /* A handler that was installed over this one, such as faulthandler, raises the signal again and so
     * hides the address: then all files are checked. */
    int covered = raised ? info->si_pid == getpid() && cover_short_files()
                         : cover_address((uintptr_t)info->si_addr);
    if (!covered)
        pass_on(number, info, context, raised);
    errno = saved;
}

/* Return the number of an action in the list of previous ones; -1 when the list is full. */
static int known_action_of(const struct sigaction *action) {
    for (int i = 0; i < KNOWN_ACTIONS; i++) {
        struct known_action *known = &known_actions[i];
        int free_state = 0;
        if (was_swapped(&known->state, &free_state, 1)) {
            known->action = *action;
            set(&known->state, 2);
            return i;
        }
        if (free_state == 2 && known->action.sa_handler == action->sa_handler &&
            known->action.sa_flags == action->sa_flags)
            return i;
    }
    return -1;
}

/* Install the handler over the current one of SIGBUS; return -1 when that is not possible. */
static int guard_mappings(void) {
    struct sigaction current, ours;
    int previous;
    if (sigaction(SIGBUS, NULL, &current) != 0)
        return -1;
    if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == on_bus_error)
        return 0;
    previous = known_action_of(&current);
    if (previous < 0) {
        errno = ENOSPC;
        return -1;
    }
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    set(&previous_action, previous);
    memset(&ours, 0, sizeof ours);
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    return sigaction(SIGBUS, &ours, NULL);
}

/* Map the first ``size`` bytes of a file for reading; return NULL with errno set on failure.
 * ``descriptor`` then belongs to the region. */
static struct mapped_region *map_region(int descriptor, size_t size) {
    struct mapped_region *region;
    void *memory;
    if (guard_mappings() != 0)
        return NULL;
    region = free_region();
    if (region == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    memory = mmap(NULL, size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (memory == MAP_FAILED) {
        set(&region->taken, 0);
        return NULL;
    }
    describe(region, (uintptr_t)memory, (uintptr_t)memory + whole_pages(size), descriptor);
    return region;
}

static void unmap_region(struct mapped_region *region) {
    uintptr_t begin = region->begin, end = region->end;
    int descriptor = region->descriptor;
    describe(region, 0, 0, -1); /* before these addresses are used again */
    munmap((void *)begin, end - begin);
    close(descriptor);
    set(&region->taken, 0);
}

static inline int64_t change_time(const struct stat *status) {
#ifdef __APPLE__
    return (int64_t)status->st_ctimespec.tv_sec * 1000000000 + status->st_ctimespec.tv_nsec;
#else
    return (int64_t)status->st_ctim.tv_sec * 1000000000 + status->st_ctim.tv_nsec;
#endif
}

#undef get
#undef set
#undef was_swapped

#endif
