// Package.swift beside the sources: a target is given what its files import, and nothing else.
import Foundation
import Testing

@Suite struct ManifestTests {
  private struct Target {
    var name: String
    var folder: String
    var dependencies: Set<String>

    /// A line of the manifest's targets; nil for those without modules to import.
    init?(_ line: Substring) {
      guard let call = line.firstMatch(of: /^ {4}\.?(\w+)\( *(?:name: )?"([\w-]+)"/) else { return nil }
      let first = String(call.2)
      let given = line.firstMatch(of: /\[((?:[^\[\]]|\[[^\]]*\])*)\]/)?.1 ?? ""
      dependencies = Set(given.matches(of: /"([\w-]+)"/).map { String($0.1) })
      let named = line.firstMatch(of: /(?:path|in|of): "([\w\/]+)"/).map { String($0.1) }
      switch call.1 {
      case "hub": (name, folder) = ("Hub" + first, "Sources/" + first)
      case "support": (name, folder) = ("Hub" + first, "\(named ?? "")/\(first)")
      case "tests":
        (name, folder) = (first + "Tests", "Tests/\(first)Tests")
        dependencies.formUnion([named ?? "Hub" + first, "HubTestSupport"])
      case "target", "executableTarget": (name, folder) = (first, named ?? "Sources/" + first)
      case "testTarget": (name, folder) = (first, "Tests/" + first)
      case _: return nil
      }
    }
  }

  @Test("A target is given what its files import, and nothing else but programs that its tests run")
  func imports() throws {
    let manifest = try SourceTree.text("Package.swift").replacing(/\/\/.*/, with: "")
    let list = manifest.components(separatedBy: "\n  targets: [")[1].components(separatedBy: "\n  ]")[0]
    // Each target as one line.
    let targets = list.replacing(/\n {5,}/, with: " ").split(separator: "\n").compactMap { Target($0) }
    #expect(targets.count > 65)
    let modules = Set(targets.map(\.name)).union(["CHubLinux", "CHubLoadTest", "CHubOpenSSL", "CHubZlib"])
    let programs = ["locationhub", "hub-loadtest", "hub-autobahn-server"]
    let files = try SourceTree.files()
    for target in targets {
      let lines = files.filter { $0.path.hasPrefix(target.folder + "/") }.flatMap(\.lines)
      let imported = lines.lazy.filter { $0.contains("import ") }.compactMap { line in
        line.firstMatch(of: /^ *(?:@\w+ |public |package )*import (?:struct |class |enum |func )?(\w+)/)?.1
      }
      let wanted = Set(imported.map { String($0) }).intersection(modules).subtracting(programs)
      #expect(target.dependencies.subtracting(programs) == wanted, "\(target.name)")
    }
  }
}
