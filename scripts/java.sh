#!/usr/bin/env bash
# Makes sure that Spark finds a Java 17 or newer, and prints its home on stdout.
# Looks at JAVA_HOME, at PATH and where Debian, Fedora and macOS put it; as root with apt-get it installs one.
set -euo pipefail

OLDEST=17

say() { echo "java: $*" >&2; }

# Succeeds when $1 is a Java of the right age. java.home and not the path, because `java` is often a chain of links.
home_of() {
    local settings version
    settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    version=$(sed -n 's/^ *java.specification.version = //p' <<<"$settings")
    [[ ${version%%.*} =~ ^[0-9]+$ ]] && ((${version%%.*} >= OLDEST)) || return 1
    sed -n 's/^ *java.home = //p' <<<"$settings"
}

at_hand() {
    if [[ -n ${JAVA_HOME:-} ]]; then
        home_of "$JAVA_HOME/bin/java" && return
        say "JAVA_HOME=$JAVA_HOME holds no Java $OLDEST or newer, looking elsewhere"
    fi
    if command -v java >/dev/null; then home_of java; else return 1; fi
}

installed_elsewhere() {
    local java
    for java in /usr/lib/jvm/*/bin/java /opt/homebrew/opt/openjdk*/bin/java /usr/local/opt/openjdk*/bin/java \
        /Library/Java/JavaVirtualMachines/*/Contents/Home/bin/java; do
        [[ -x $java ]] && home_of "$java" && return
    done
    return 1
}

# Debian's releases differ in which Java they have: the one Spark is built for first, else the newest.
package() {
    apt-cache search --names-only '^openjdk-[0-9]+-jre-headless$' | awk '{print $1}' | sort -t- -k2 -n |
        awk -v want="openjdk-$OLDEST-jre-headless" '$0 == want {found = 1} {last = $0} END {print found ? want : last}'
}

install() {
    command -v apt-get >/dev/null && [[ $(id -u) == 0 ]] || return 1
    say "none found, installing one with apt-get (about 200 MB, a minute or two)"
    apt-get update -q >&2 || say "apt-get update failed, going on with the package lists that are here"
    local name
    name=$(package)
    [[ -n $name ]] || return 1
    say "installing $name"
    DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$name" >&2
}

what_to_do() {
    say "Spark needs Java $OLDEST or newer, and none was found in JAVA_HOME, on PATH or in /usr/lib/jvm. Install one:"
    cat >&2 <<EOF
    Debian, Ubuntu:  sudo apt-get update && sudo apt-get install -y openjdk-17-jre-headless
    Fedora:          sudo dnf install -y java-21-openjdk-headless
    macOS:           brew install openjdk@17
then run the same command again. A Java in an unusual place is found through JAVA_HOME.
EOF
}

if at_hand; then exit; fi
if home=$(installed_elsewhere) || { install && home=$(installed_elsewhere); }; then
    [[ $(home_of java) == "$home" ]] || say "to run towpath without make: export JAVA_HOME=$home"
    echo "$home"
else
    what_to_do
    exit 1
fi
