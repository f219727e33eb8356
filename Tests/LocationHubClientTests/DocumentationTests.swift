// The library's documentation as DocC makes it. The last step of each tutorial also runs, with a hub
// (Tests/ForeignPackage).
import Foundation
import Testing

@Suite(.enabled(if: Toolchain.modules != nil, "needs the modules of a build by SwiftPM")) struct DocumentationTests {
  private static let catalogue = Toolchain.root.appending(path: "Sources/LocationHubClient/Documentation.docc")

  @Test("DocC has no warning: every link leads somewhere, every parameter is described")
  func documentation() throws {
    let toolchain = try Toolchain()
    defer { toolchain.end() }
    let graph = try toolchain.symbolGraph(of: "LocationHubClient")
    #expect(graph.isRight, "\(graph.text)")
    let made = try toolchain.run([
      "docc", "convert", Self.catalogue.path, "--additional-symbol-graph-dir", toolchain.folder.path, "--output-path",
      toolchain.folder.appending(path: "out").path, "--fallback-display-name", "LocationHubClient",
      "--fallback-bundle-identifier", "LocationHubClient", "--warnings-as-errors",
    ])
    #expect(made.isRight && !made.text.contains("warning:"), "\(made.text)")
  }

  @Test("each type that comes with the library from the hub's modules is on its page")
  func types() throws {
    let exports = try String(
      contentsOf: Toolchain.root.appending(path: "Sources/LocationHubClient/LocationHubClient.swift"), encoding: .utf8)
    let page = try String(contentsOf: Self.catalogue.appending(path: "Types.md"), encoding: .utf8)
    let names = exports.split(separator: "\n").filter { $0.hasPrefix("@_exported") }.compactMap {
      $0.split(separator: ".").last
    }
    #expect(names.count > 20)
    for name in names { #expect(page.contains("`\(name)`"), "\(name)") }
  }

  @Test("every step of the tutorials compiles, as a program of its own")
  func steps() throws {
    let toolchain = try Toolchain()
    defer { toolchain.end() }
    let folder = Self.catalogue.appending(path: "Resources")
    let steps = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
    #expect(steps.count == 8)
    for step in steps {
      let text = try String(contentsOf: folder.appending(path: step), encoding: .utf8)
      let checked = try toolchain.swiftc(["-typecheck"], [try toolchain.file("main.swift", text)])
      #expect(checked.isRight, "\(step): \(checked.text)")
    }
  }
}
