#!/usr/bin/env bash
# Fetches an Apache Kafka broker and Spark's connector for the PySpark version $1 from Maven Central, for the tests, and
# prints the folder that holds them: broker/*.jar, connector/*.jar and connector/version. The second time it finds them.
# With TOWPATH_KAFKA=required a missing Maven is installed if this is root with apt-get.
set -euo pipefail

SPARK=$1
KAFKA=4.3.1
# Not every Maven repository has every version. What is tried: the connector of this Spark, then the newest that was seen
# to work with it, each with the version of the token provider it needs.
CONNECTORS=("$SPARK $SPARK" "4.2.0 4.1.0-preview1")
NOT_IN_SPARK=spark-sql-kafka-0-10_2.13,spark-token-provider-kafka-0-10_2.13,kafka-clients,commons-pool2
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/towpath/kafka-$KAFKA-spark-$SPARK

say() { echo "kafka: $*" >&2; }

see_to_maven() {
    if command -v mvn >/dev/null; then return; fi
    if [[ ${TOWPATH_KAFKA:-} == required && $(id -u) == 0 ]] && command -v apt-get >/dev/null; then
        say "installing maven with apt-get"
        apt-get update -q >&2 || say "apt-get update failed, going on with the package lists that are here"
        DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends maven >&2
    fi
    command -v mvn >/dev/null || { say "no mvn on PATH; install Maven to run the tests with Kafka" && exit 1; }
}

dependency() { echo "<dependency><groupId>$1</groupId><artifactId>$2</artifactId><version>$3</version></dependency>"; }

# Copies the dependencies $2 and what they need into the folder $1; $3 manages versions, $4 names the artifacts to copy.
fetch() {
    local work=$CACHE.new/$1
    mkdir -p "$work"
    cat >"$work/pom.xml" <<EOF
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>towpath</groupId><artifactId>$1</artifactId><version>1</version>
  <dependencyManagement><dependencies>$3</dependencies></dependencyManagement>
  <dependencies>$2</dependencies>
</project>
EOF
    mvn --quiet --batch-mode --file "$work/pom.xml" dependency:copy-dependencies \
        -DincludeScope=runtime -DincludeArtifactIds="$4" -DoutputDirectory="$work" >"$work/mvn.log" 2>&1
}

fetch_connector() {
    local versions connector tokens
    for versions in "${CONNECTORS[@]}"; do
        read -r connector tokens <<<"$versions"
        if fetch connector \
            "$(dependency org.apache.spark spark-sql-kafka-0-10_2.13 "$connector")" \
            "$(dependency org.apache.spark spark-token-provider-kafka-0-10_2.13 "$tokens")" "$NOT_IN_SPARK"; then
            echo "$connector" >"$CACHE.new/connector/version"
            return
        fi
        say "Maven has no connector $connector"
    done
    return 1
}

if [[ ! -d $CACHE ]]; then
    see_to_maven
    say "fetching Kafka $KAFKA and Spark's connector (about 60 MB, once)"
    rm -rf "$CACHE.new"
    if ! { fetch broker "$(dependency org.apache.kafka kafka_2.13 "$KAFKA")" "" "" && fetch_connector; }; then
        say "Maven Central is out of reach, or has no such version; see $CACHE.new/*/mvn.log"
        exit 1
    fi
    mv "$CACHE.new" "$CACHE"
fi
echo "$CACHE"
