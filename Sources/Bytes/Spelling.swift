// Comparison of texts that a peer has chosen.

extension StringProtocol {
  /// Whether it is spelled with just these bytes of UTF-8. O(length).
  ///
  /// For what a peer has sent: `==`, `switch` and `Dictionary` find what is canonically equivalent as well (Unicode
  /// §3.12), and take the square of a run of combining marks for it: half a second for 16 KB.
  package func isSpelled(_ word: some StringProtocol) -> Bool { utf8.elementsEqual(word.utf8) }
}
