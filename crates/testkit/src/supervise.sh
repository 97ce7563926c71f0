# Runs a server for as long as somebody holds the other end of stdin: if that process dies, even by SIGKILL, the server
# is ended, too. $1 is the folder to remove with it, or nothing; then the server and its arguments.
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
# 137: it was ended by the watcher; a server that ended by itself leaves its log behind
if [ "$status" -eq 137 ] && [ -n "$folder" ]; then
    rm -rf "$folder" || rm -rf "$folder"
fi
exit "$status"
