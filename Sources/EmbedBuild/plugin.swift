// The build plugin that writes the commit and the compiler into the executable. It runs before each build and writes
// its file only on a change, so that nothing is rebuilt without need.
import Foundation
import PackagePlugin

@main
struct EmbedBuild: BuildToolPlugin {
  /// `unknown` where the package is no checkout of git (an archive of its sources), or git is not there.
  private static let script = """
    commit=unknown
    if [ "$(git -C "$1" rev-parse --show-toplevel 2>/dev/null)" = "$1" ]; then
      commit=$(git -C "$1" describe --always --dirty --abbrev=12 --exclude='*' 2>/dev/null || echo unknown)
    fi
    compiler=$("$2" --version 2>/dev/null | sed -n 's/.*Swift version \\([0-9.]*\\).*/\\1/p' | head -n 1)
    text="enum Build {
      static let commit = \\"$commit\\"
      static let compiler = \\"${compiler:-unknown}\\"
    }"
    [ "$(cat "$3" 2>/dev/null)" = "$text" ] || printf '%s\\n' "$text" > "$3"
    """

  func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
    let folder = context.pluginWorkDirectoryURL
    return [
      .prebuildCommand(
        displayName: "Embedding the commit", executable: URL(filePath: "/bin/sh"),
        arguments: [
          "-c", EmbedBuild.script, "sh", context.package.directoryURL.path,
          try context.tool(named: "swiftc").url.path, folder.appending(path: "Build.swift").path,
        ], outputFilesDirectory: folder)
    ]
  }
}
