// The client's core runs on Apple systems, too: whatever it reaches, by the manifest or by the imports in its sources,
// has neither epoll nor OpenSSL.
import Foundation
import Testing

@Suite struct ClientReachTests {
  /// What only Linux has, or a phone should not need.
  private static let forbidden: Set<String> = ["CHubLinux", "CHubOpenSSL", "HubSystem", "HubTransport", "HubTokens"]
  /// Calls of theirs that need no import of their own: Glibc has some.
  private static let calls = ["epoll_", "SSL_", "EVP_", "eventfd(", "timerfd_"]

  /// The modules that the manifest gives each of ours: `hub("Geo", ["HubBytes"])` and `.target(name: …)`.
  private func dependencies(_ manifest: String) -> [String: Set<String>] {
    var found: [String: Set<String>] = [:]
    func add(_ module: String, _ list: Substring?) {
      found[module] = Set((list ?? "").matches(of: /"(\w+)"/).map { String($0.1) })
    }
    for match in manifest.matches(of: /\bhub\(\s*"(\w+)"(?:,\s*\[([^\]]*)\])?/) { add("Hub" + match.1, match.2) }
    for match in manifest.matches(of: /\.target\(\s*name: "(\w+)",\s*dependencies: \[([^\]]*)\]/) {
      add(String(match.1), match.2)
    }
    return found
  }

  /// Of each module, the lines of its sources.
  private func sources(_ files: [SourceFile]) -> [String: [String]] {
    var found: [String: [String]] = [:]
    for file in files where file.path.hasPrefix("Sources/") {
      let folder = file.path.split(separator: "/")[1]
      found[folder.hasPrefix("Hub") ? String(folder) : "Hub" + folder, default: []] += file.lines
    }
    return found
  }

  private func imports(_ lines: [String]) -> Set<String> {
    Set(
      lines.lazy.filter { $0.contains("import ") }.compactMap {
        $0.firstMatch(of: /^ *(?:@\w+ )*(?:\w+ )?import (?:\w+ )?(\w+)/).map { String($0.1) }
      })
  }

  /// What the core reaches, and what of it must not be.
  private func reach(_ manifest: String, _ files: [SourceFile]) -> (modules: Set<String>, wrong: [String]) {
    let (dependencies, sources) = (dependencies(manifest), sources(files))
    var (reached, open, wrong): (Set<String>, Set<String>, [String]) = ([], ["HubClientCore"], [])
    while let module = open.popFirst() {
      guard reached.insert(module).inserted else { continue }
      if Self.forbidden.contains(module) { wrong.append(module) }
      let lines = sources[module] ?? []
      open.formUnion((dependencies[module] ?? []).union(imports(lines)).subtracting(reached))
      for call in Self.calls where lines.contains(where: { $0.contains(call) && !$0.contains("//") }) {
        wrong.append("\(module): \(call)")
      }
    }
    return (reached, wrong.sorted())
  }

  @Test("What the client's core reaches has neither epoll nor OpenSSL; where it had, this would be found")
  func core() throws {
    let manifest = try SourceTree.text("Package.swift")
    let files = try SourceTree.files()
    let now = reach(manifest, files)
    #expect(now.wrong == [])
    #expect(now.modules.isSuperset(of: ["HubWebSocket", "HubHTTP", "HubMessages", "HubGeo", "HubBytes", "CHubZlib"]))
    #expect(!now.modules.contains("HubCore") && now.modules.count < 15)

    let names = #""HubWebSocket", "HubHTTP", "HubMessages", "HubGeo", "HubBytes""#
    let further = manifest.replacing(#"hub("ClientCore", [\#(names)])"#, with: #"hub("ClientCore", ["HubTokens"])"#)
    #expect(further != manifest)
    #expect(reach(further, files).wrong.prefix(2) == ["CHubOpenSSL", "HubTokens"])
    let deeper = manifest.replacing(#"hub("HTTP", ["HubBytes"])"#, with: #"hub("HTTP", ["HubSystem"])"#)
    #expect(reach(deeper, files).wrong.prefix(2) == ["CHubLinux", "HubSystem"])
    for (path, line, found) in [
      ("Sources/Messages/A.swift", "  public import CHubOpenSSL", "CHubOpenSSL"),
      ("Sources/Geo/A.swift", "@_exported import struct HubTransport.EventLoop", "HubTransport"),
      ("Sources/ClientCore/A.swift", "let poller = epoll_create1(0)", "HubClientCore: epoll_"),
    ] {
      #expect(reach(manifest, files + [SourceFile(path: path, lines: [line])]).wrong.contains(found), "\(line)")
    }
  }
}
