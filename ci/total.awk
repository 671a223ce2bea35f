# Adds up pytest's closing lines ("=== 12 passed, 1 warning in 3.45s (0:00:03) ===") into one of the same form.
{
    for (i = 1; i < NF; i++) {
        if ($i == "in") seconds += $(i + 1)
        else if ($i ~ /^[0-9]+$/) { word = $(i + 1); sub(/,$/, "", word); if (!(word in count)) order[++words] = word; count[word] += $i }
    }
}
END {
    if (!words) exit
    for (i = 1; i <= words; i++) text = text (i > 1 ? ", " : "") count[order[i]] " " order[i]
    printf "================ %s in %.2fs ================\n", text, seconds
}
