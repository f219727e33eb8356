// Texts for which Swift's comparison of texts takes the square of their length.

/// A letter and so many bytes of combining marks, those of the highest class first: to be put in canonical order
/// (Unicode §3.11), each passes all before it.
public func combiningMarks(bytes: Int) -> String {
  let marks: [Unicode.Scalar] = ["\u{345}", "\u{315}", "\u{300}", "\u{316}", "\u{334}"]
  var text = "x"
  for mark in marks { for _ in 0..<bytes / 2 / marks.count { text.unicodeScalars.append(mark) } }
  return text
}
