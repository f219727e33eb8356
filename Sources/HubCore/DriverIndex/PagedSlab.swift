// Numbered elements in pages that never move: growing costs one page, so that no call of the hub pays for copying a
// table of a million drivers (an Array doubles, which is 30 ms there, and keeps up to half of its memory unused).
//
// Why the unsafe code is right: a page is allocated and initialised before `count` passes its first element, and is
// freed only in deinit; every access checks its index against `count`; the type is not copyable, so there is one
// owner, and elements are trivial, so there is nothing to destroy.

/// A growing table of trivial elements with stable numbers from 0.
@safe
struct PagedSlab<Element: BitwiseCopyable>: ~Copyable {
  private let pages: UnsafeMutablePointer<UnsafeMutablePointer<Element>>
  private let pageShift: Int
  /// On the heap, for a stored property of the type Element keeps debug builds from calling deinit (Swift 6.3.1).
  private let filler: UnsafeMutablePointer<Element>
  /// The number of elements, all initialised.
  private(set) var count = 0
  /// The most that it may hold.
  let limit: Int
  private var pageCount = 0

  /// Allocates only the list of pages: 8 bytes for each 2^`pageShift` elements of `limit`.
  init(limit: Int, pageShift: Int, filler: Element) {
    precondition(limit > 0 && pageShift > 0)
    self.limit = limit
    self.pageShift = pageShift
    unsafe self.filler = .allocate(capacity: 1)
    unsafe self.filler.initialize(to: filler)
    unsafe pages = .allocate(capacity: (limit - 1) >> pageShift + 1)
  }

  deinit {
    for page in 0..<pageCount { unsafe pages[page].deallocate() }
    unsafe pages.deallocate()
    unsafe filler.deallocate()
  }

  /// Bytes allocated for elements.
  var allocatedBytes: Int { pageCount << pageShift * MemoryLayout<Element>.stride }

  /// Adds elements (copies of the filler) until there are `newCount`. Precondition: `newCount` is within the limit.
  mutating func grow(to newCount: Int) {
    precondition(newCount <= limit)
    while pageCount << pageShift < newCount {
      // Aligned to cache lines, else half of the 32-byte elements would cross one.
      let bytes = MemoryLayout<Element>.stride << pageShift
      let page = unsafe UnsafeMutableRawPointer.allocate(byteCount: bytes, alignment: 64)
        .initializeMemory(as: Element.self, repeating: filler.pointee, count: 1 << pageShift)
      unsafe pages[pageCount] = unsafe page
      pageCount += 1
    }
    count = max(count, newCount)
  }

  @inline(__always)
  private func address(_ index: Int) -> UnsafeMutablePointer<Element> {
    precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
    return unsafe pages[index >> pageShift] + index & (1 << pageShift - 1)
  }

  subscript(index: Int) -> Element {
    @inline(__always) get { unsafe address(index).pointee }
    @inline(__always) _modify { yield unsafe &address(index).pointee }
  }

  subscript(index: UInt32) -> Element {
    @inline(__always) get { unsafe address(Int(index)).pointee }
    @inline(__always) _modify { yield unsafe &address(Int(index)).pointee }
  }

  /// The elements `first ..< first + count`, which must be in one page, valid during the call.
  @inline(__always)
  func withRun<R>(from first: Int, count: Int, _ body: (UnsafeBufferPointer<Element>) -> R) -> R {
    guard count > 0 else { return unsafe body(UnsafeBufferPointer(start: nil, count: 0)) }
    precondition(first >> pageShift == (first + count - 1) >> pageShift)
    _ = unsafe address(first + count - 1)  // the bounds check of the last
    return unsafe body(UnsafeBufferPointer(start: address(first), count: count))
  }
}
