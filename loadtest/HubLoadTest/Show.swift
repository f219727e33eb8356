// What a run tells the person who started it.
import Glibc
import Transport

func fail(_ text: String) -> Never {
  StandardStream.error.write("hub-loadtest: \(text)\n")
  exit(2)
}

func show(_ text: String) { StandardStream.output.write(text + "\n") }
func decimals(_ value: Double, _ count: Int = 2) -> String {
  var scale = 1.0
  for _ in 0..<count { scale *= 10 }
  let whole = Int((value * scale).rounded())
  let digits = String(abs(whole))
  let padded = String(repeating: "0", count: max(0, count + 1 - digits.count)) + digits
  return (whole < 0 ? "-" : "") + padded.dropLast(count) + (count > 0 ? "." : "") + padded.suffix(count)
}
