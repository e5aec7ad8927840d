//! Changes by lot. All that is drawn comes from the seed.

/// Largest input.
const LARGEST: usize = 1 << 20;

/// What has meant trouble to somebody.
const WORDS: [&[u8]; 40] = [
    b"\0",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xe2\x80\xae",
    b"NaN",
    b"-0",
    b"1e400",
    b"-1",
    b"18446744073709551616",
    b"9223372036854775807",
    b"0x7fffffff",
    b"9999-12-31T23:59:59Z",
    b"0000-01-01T00:00:00Z",
    b"-009999-01-02T01:59:59Z",
    b"2026-02-30T25:61:61Z",
    b"&a [*a, *a]",
    b"*a",
    b"<<: *a",
    b"!!binary ",
    b"---\n",
    b"...\n",
    b"? ",
    b"|+9\n",
    b"{{{{",
    b"[[[[",
    b"\"\\ud800\"",
    b"\\u0000",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"-----BEGIN CERTIFICATE-----\n",
    b"-----END CERTIFICATE-----\n",
    b"\x30\x84\xff\xff\xff\xff",
    b"\x30\x80",
    b"\xc0\x0c",
    b"\xc0\xff",
    b"xn--\xc3\xa9.example",
];

/// Numbers as a seed has them (SplitMix64).
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// A number below that; 0 below 0.
    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap();
        usize::try_from(self.next() % end).unwrap()
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// Where a piece begins and ends.
    fn piece(&mut self, length: usize) -> (usize, usize) {
        let from = self.below(length);
        let most = if self.below(4) == 0 { length - from } else { (length - from).min(40) };
        (from, from + self.below(most + 1))
    }
}

/// One of these files, changed.
pub(crate) fn changed(rng: &mut Rng, files: &[&[u8]]) -> Vec<u8> {
    let mut bytes = rng.of(files).to_vec();
    for _ in 0..=rng.below(5) {
        change(rng, &mut bytes, files);
    }
    bytes.truncate(LARGEST);
    bytes
}

fn change(rng: &mut Rng, bytes: &mut Vec<u8>, files: &[&[u8]]) {
    let length = bytes.len();
    let (from, to) = rng.piece(length);
    match rng.below(64) {
        0..16 if length > 0 => {
            for _ in 0..=rng.below(4) {
                let at = rng.below(length);
                bytes[at] ^= 1 << rng.below(8);
            }
        }
        16..20 if length > 0 => {
            let at = rng.below(length);
            bytes[at] = rng.next().to_le_bytes()[0];
        }
        20..28 => drop(bytes.drain(from..to)),
        28..34 => {
            let piece = bytes[from..to].to_vec();
            let times = [1, 2, 10, 200][rng.below(4)];
            let again = piece.repeat(times);
            bytes.splice(to..to, again);
        }
        34..42 => {
            let other = rng.of(files);
            let (first, last) = rng.piece(other.len());
            bytes.splice(from..to, other[first..last].iter().copied());
        }
        42..58 => {
            let word = rng.of(&WORDS);
            let end = if rng.below(2) == 0 { from } else { to };
            bytes.splice(from..end, word.iter().copied());
        }
        58..62 => bytes.truncate(from),
        // To a megabyte, of which most is one piece again and again.
        62 if to > from => {
            let piece = bytes[from..to].to_vec();
            let times = LARGEST.saturating_sub(length) / piece.len();
            bytes.splice(to..to, piece.repeat(times));
        }
        _ => {
            let piece = rng.of(&WORDS);
            let times = LARGEST.saturating_sub(length) / piece.len() / [1, 16, 256][rng.below(3)];
            bytes.splice(from..from, piece.repeat(times));
        }
    }
}

/// Shorter and shorter inputs that still do harm; asked for as long as `patience` lasts.
pub(crate) fn shortened(
    mut bytes: Vec<u8>,
    mut is_harmful: impl FnMut(&[u8]) -> bool,
    mut has_time: impl FnMut() -> bool,
) -> Vec<u8> {
    let mut size = bytes.len() / 2;
    while size > 0 && has_time() {
        let (mut at, mut is_shorter) = (0, false);
        while at < bytes.len() && has_time() {
            let end = (at + size).min(bytes.len());
            let without = [&bytes[..at], &bytes[end..]].concat();
            if is_harmful(&without) {
                bytes = without;
                is_shorter = true;
            } else {
                at = end;
            }
        }
        if !is_shorter || size > bytes.len() {
            size /= 2;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_changes_and_none_is_larger_than_a_megabyte() {
        let files: [&[u8]; 2] = [b"one of them", b"and the other"];
        let of = |seed| {
            let mut rng = Rng::new(seed);
            (0..200).map(|_| changed(&mut rng, &files)).collect::<Vec<_>>()
        };
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        assert!(of(7).iter().all(|bytes| bytes.len() <= LARGEST));
        assert!(of(7).iter().any(|bytes| bytes.len() > LARGEST / 2));
    }

    #[test]
    fn what_does_harm_is_made_as_short_as_it_gets() {
        let long = [&b"x".repeat(1000)[..], b"harm", &b"y".repeat(1000)].concat();
        let is_harmful = |bytes: &[u8]| bytes.windows(4).any(|word| word == b"harm");
        assert_eq!(shortened(long, is_harmful, || true), b"harm");
    }
}
