// The files that are in the executable are those of `web/`, and what is made of them at the start.
import Foundation
import HubTestSupport
import Testing

@testable import HubPages

@Suite struct PagesTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Sources/Pages")

  @Test("each file of the folder is in the executable as it stands, and no other")
  func embedded() throws {
    let folder = Self.folder.appending(path: "web")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(Set(names) == Set(Pages.files.keys) && names.contains("hub.js"))
    for name in names {
      let bytes = Array(try Data(contentsOf: folder.appending(path: name)))
      let file = try #require(Pages.files[name])
      #expect(file.bytes == bytes, "\(name)")
      #expect(try gunzip(#require(file.compressed)) == bytes)
    }
  }

  @Test("a file's tag is the first half of its SHA-256, and what does not become smaller is not compressed")
  func tags() {
    let file = PageFile(Array("abc".utf8), type: "text/plain")  // FIPS 180-4's example
    #expect(file.tag == "ba7816bf8f01cfea414140de5dae2223")
    #expect(file.compressed == nil)
  }

  @Test(
    "a file's type goes by its name",
    arguments: [
      ("index.html", "text/html; charset=utf-8"), ("style.css", "text/css; charset=utf-8"),
      ("hub.js", "text/javascript; charset=utf-8"), ("hub.d.ts", "text/plain; charset=utf-8"),
      ("icon.svg", "image/svg+xml"), ("app.webmanifest", "application/manifest+json"),
      ("LICENSE", "text/plain; charset=utf-8"),
    ])
  func types(name: String, type: String) { #expect("\(Pages.type(of: name))" == type) }

  @Test("the release is that of the package of the client")
  func release() throws {
    let text = try String(contentsOf: Self.folder.appending(path: "package.json"), encoding: .utf8)
    let version = try #require(text.firstMatch(of: /"version": "([^"]+)"/)).1
    #expect(Release.name.hasPrefix(version))
  }

  @Test(
    "tiles come from an http or https URL with {z}, {x} and {y}, and a host that means nothing else in a policy",
    arguments: [
      ("https://tiles.example/{z}/{x}/{y}.png", "https://tiles.example"),
      ("http://127.0.0.1:8081/{z}/{x}/{y}", "http://127.0.0.1:8081"), ("https://t.example/{z}/{x}.png", nil),
      ("ftp://t.example/{z}/{x}/{y}", nil), ("https:///{z}/{x}/{y}", nil), ("/tiles/{z}/{x}/{y}", nil),
      ("https://a;script-src *.example/{z}/{x}/{y}", nil), ("https://*/{z}/{x}/{y}", nil),
      ("https://a b/{z}/{x}/{y}", nil), ("https://me:secret@t.example/{z}/{x}/{y}", nil),
    ])
  func tiles(url: String, origin: String?) { #expect(MapTiles(url: url)?.origin == origin) }
}
