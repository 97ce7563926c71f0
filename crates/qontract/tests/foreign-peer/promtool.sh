#!/bin/sh
# Stands in for the version of promtool that qontract-reconcile requires: every rule is valid.
case $1 in
--version) echo "promtool, version 2.33.3 (branch: HEAD)" ;;
esac
