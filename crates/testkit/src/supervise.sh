# Runs a server for as long as the other end of stdin is open: if the parent process dies, even by SIGKILL, the server is
# killed, too. $1 is the directory to remove at the end, or empty; then the server and its arguments.
trap '' HUP INT TERM
exec 3<&0
folder=$1
shift
"$@" 3<&- </dev/null &
server=$!
(
    read -r _ <&3
    kill -KILL "$server"
) >/dev/null 2>&1 &
watcher=$!
wait "$server"
status=$?
kill -KILL "$watcher" 2>/dev/null
# 137: killed by the watcher; the log of a server that exited is left behind
if [ "$status" -eq 137 ] && [ -n "$folder" ]; then
    rm -rf "$folder" || rm -rf "$folder"
fi
exit "$status"
