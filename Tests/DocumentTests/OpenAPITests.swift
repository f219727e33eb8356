// The endpoints in protocol/openapi.yaml are those of the table of routes. The YAML is read as lines of text: a path
// stands at two spaces, its methods at four. What each operation says is looked at with a running hub, by
// Tests/Descriptions.
import Foundation
import Testing

@testable import HubGateway

@Suite struct OpenAPITests {
  @Test("each endpoint of the router is described, and nothing else is")
  func endpoints() throws {
    let routed = Set(
      Routes.all.flatMap { route in
        let path = "/" + route.path.joined(separator: "/")
        return route.allowedMethods.split(separator: ", ").filter { $0 != "HEAD" }.map { "\($0) \(path)" }
      })
    let described = try Self.operations()
    #expect(described.count == Set(described).count, "a path with other names for its parameters is the same path")
    #expect(routed.subtracting(described).sorted() == [], "describe these")
    #expect(Set(described).subtracting(routed).sorted() == [], "there are no such endpoints")
  }

  /// `GET /v1/trips/{id}` and so on. A file of the pages, which refers to what all have in common, has `GET`.
  private static func operations() throws -> [String] {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().appending(path: "protocol/openapi.yaml")
    let text = try String(contentsOf: file, encoding: .utf8)
    let section = try #require(text.firstRange(of: "\npaths:\n"))
    var (operations, path) = ([String](), "")
    for line in text[section.upperBound...].split(separator: "\n") {
      guard line.hasPrefix(" ") else { break }
      if let match = line.firstMatch(of: /^  (\/.*):$/) {
        path = String(match.1.replacing(/\{\w+\}/, with: "{id}"))
      } else if let match = line.firstMatch(of: /^    (get|put|post|patch|delete|head|options):$/) {
        operations.append("\(match.1.uppercased()) \(path)")
      } else if line == "    $ref: '#/components/pathItems/PageFile'" {
        operations.append("GET \(path)")
      }
    }
    return operations
  }
}
