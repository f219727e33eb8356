// Texts for which Swift's comparison of texts takes the square of their length.
import Glibc

/// A letter and so many bytes of combining marks, those of the highest class first: to be put in canonical order
/// (Unicode §3.11), each passes all before it.
public func combiningMarks(bytes: Int) -> String {
  let marks: [Unicode.Scalar] = ["\u{345}", "\u{315}", "\u{300}", "\u{316}", "\u{334}"]
  var text = "x"
  for mark in marks { for _ in 0..<bytes / 2 / marks.count { text.unicodeScalars.append(mark) } }
  return text
}

/// The seconds of processor time that `body` takes, on this thread. For what would cost the square of its length: a
/// slow machine, and tests beside it, do not count.
public func processorSeconds(_ body: () throws -> Void) rethrows -> Double {
  let start = threadSeconds()
  try body()
  return threadSeconds() - start
}

private func threadSeconds() -> Double {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
