// The compiler and DocC, for what no build of this machine compiles: code for other systems, and the documentation's.
import Foundation
import Testing

/// Works in a folder of its own, which `end` removes.
struct Toolchain {
  typealias Outcome = (isRight: Bool, text: String)

  static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()
  /// Where this build's modules lie; nil where it lies elsewhere than SwiftPM puts it.
  static let modules: URL? = {
    var folder = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    for _ in 0..<4 {
      folder.deleteLastPathComponent()
      let modules = folder.appending(path: "Modules")
      let one = modules.appending(path: "HubClientCore.swiftmodule")
      if FileManager.default.fileExists(atPath: one.path) { return modules }
    }
    return nil
  }()

  let folder: URL
  /// Where this project's modules are, the C ones among them.
  private let search: [String]

  init() throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "toolchain-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    search =
      ["-I", try #require(Self.modules).path]
      + ["CLinux", "COpenSSL", "CZlib"].flatMap {
        ["-Xcc", "-fmodule-map-file=\(Self.root.path)/Sources/\($0)/module.modulemap"]
      }
  }

  func end() { try? FileManager.default.removeItem(at: folder) }

  /// The path of a new file.
  func file(_ name: String, _ text: String) throws -> String {
    let file = folder.appending(path: name)
    try Data(text.utf8).write(to: file)
    return file.path
  }

  /// Compiles with this project's flags.
  func swiftc(_ options: [String], _ files: [String]) throws -> Outcome {
    let features = ["ExistentialAny", "InternalImportsByDefault", "MemberImportVisibility"].flatMap {
      ["-enable-upcoming-feature", $0]
    }
    return try run(
      ["swiftc", "-swift-version", "6", "-warnings-as-errors", "-package-name", Self.package] + options + features
        + search + files)
  }

  /// What the public API of a module is, as a file in `folder`.
  func symbolGraph(of module: String) throws -> Outcome {
    try run(
      ["swift", "symbolgraph-extract", "-module-name", module, "-target", Self.target, "-output-dir", folder.path]
        + search)
  }

  func run(_ words: [String]) throws -> Outcome {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = words
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return (process.terminationStatus == 0, text)
  }

  /// What SwiftPM calls the package to the compiler: its folder's name.
  private static var package: String {
    root.lastPathComponent.lowercased().map { $0.isLetter || $0.isNumber ? String($0) : "_" }.joined()
  }

  private static var target: String {
    #if arch(arm64)
      "aarch64-unknown-linux-gnu"
    #else
      "x86_64-unknown-linux-gnu"
    #endif
  }
}
