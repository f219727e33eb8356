# What compiles a fuzz target as Package.swift compiles the modules: for run.sh and check.sh, in the repository's folder.
flags="-swift-version 6 -parse-as-library -enable-testing"
for feature in ExistentialAny InternalImportsByDefault MemberImportVisibility; do
  flags="$flags -enable-upcoming-feature $feature"
done
for library in CLinux COpenSSL CZlib; do flags="$flags -I $root/Sources/$library"; done
