// The build plugin that makes Swift of the plain files in Sources/Pages/web, so that the executable contains them and
// nothing generated is checked in. It runs while the build is planned, and asks for a run of the tool beside it.
import Foundation
import PackagePlugin

@main
struct EmbedPages: BuildToolPlugin {
  func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
    guard let module = target.sourceModule else { return [] }
    let pages = module.sourceFiles.map(\.url).filter { $0.deletingLastPathComponent().lastPathComponent == "web" }
      .sorted { $0.path < $1.path }
    let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedPages.swift")
    return [
      .buildCommand(
        displayName: "Embedding \(pages.count) pages", executable: try context.tool(named: "hub-embed-pages").url,
        arguments: [output.path] + pages.map(\.path), inputFiles: pages, outputFiles: [output])
    ]
  }
}
