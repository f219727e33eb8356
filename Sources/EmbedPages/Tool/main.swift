// hub-embed-pages OUTPUT FILE…: writes a file of Swift that has the texts of these files in it, as literals that take
// no time to compile: 300 KB as an array of bytes (`.embedInCode`) take over a minute and 2 GB, as a literal 3 s.
import Glibc

/// Ends the build with an error.
func fail(_ text: String) -> Never {
  print("error: \(text)")
  exit(1)
}

func read(_ path: String) -> String {
  guard let file = unsafe fopen(path, "r") else { fail("cannot read \(path)") }
  defer { unsafe fclose(file) }
  var bytes: [UInt8] = []
  var block = [UInt8](repeating: 0, count: 64 * 1024)
  while case let count = unsafe fread(&block, 1, block.count, file), count > 0 { bytes += block[..<count] }
  guard let text = String(validating: bytes, as: UTF8.self), !bytes.contains(0x0D), !bytes.contains(0) else {
    fail("\(path) is no text in UTF-8 with lines that end with LF: pages are plain texts")
  }
  return text
}

/// A raw literal of several lines (SE-0200), with as many # as its text needs.
func literal(_ text: String) -> String {
  var marks = "#"
  while text.contains("\"\"\"" + marks) || text.contains("\\" + marks) { marks += "#" }
  return "\(marks)\"\"\"\n\(text)\n\"\"\"\(marks)"
}

let paths = CommandLine.arguments.dropFirst(2)
var output = """
  // Written by the plugin HubEmbedPages from Sources/Pages/web.
  enum EmbeddedPages {
    static let all: [(name: StaticString, text: StaticString)] = [

  """
for path in paths {
  let name = path.split(separator: "/").last ?? ""
  output += "(\"\(name)\", \(literal(read(path)))),\n"
}
output += "]\n}\n"
guard let file = unsafe fopen(CommandLine.arguments[1], "w"), unsafe fputs(output, file) >= 0, unsafe fclose(file) == 0
else { fail("cannot write \(CommandLine.arguments[1])") }
