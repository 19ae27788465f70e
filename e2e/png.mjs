// Makes a screenshot's PNG smaller: at most 256 colours, which pages of text hardly exceed.
import { crc32, deflateSync, inflateSync } from 'node:zlib'

/** Takes a PNG of 8 bits per channel, as browsers write them, and gives one with a palette. */
export function shrink(png) {
  let at = 8
  let header
  const data = []
  while (at < png.length) {
    const length = png.readUInt32BE(at)
    const kind = png.toString('latin1', at + 4, at + 8)
    if (kind === 'IHDR') header = png.subarray(at + 8, at + 8 + length)
    if (kind === 'IDAT') data.push(png.subarray(at + 8, at + 8 + length))
    at += length + 12
  }
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const channels = { 2: 3, 6: 4 }[header[9]]
  if (header[8] !== 8 || !channels) return png
  const pixels = unfilter(inflateSync(Buffer.concat(data)), width, height, channels)

  const counts = new Map()
  for (const p of pixels) counts.set(p, (counts.get(p) ?? 0) + 1)
  const palette = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 256).map(([p]) => p)
  const index = new Map(palette.map((p, i) => [p, i]))
  const near = (p) => {
    let best = 0
    let least = Infinity
    for (const [i, q] of palette.entries()) {
      const d = ((p >> 16) - (q >> 16)) ** 2 + ((p >> 8 & 255) - (q >> 8 & 255)) ** 2 + ((p & 255) - (q & 255)) ** 2
      if (d < least) [best, least] = [i, d]
    }
    index.set(p, best)
    return best
  }
  const raw = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const p = pixels[y * width + x]
      raw[y * (width + 1) + 1 + x] = index.get(p) ?? near(p)
    }
  }
  const head = Buffer.from(header)
  head[9] = 3
  return Buffer.concat([png.subarray(0, 8), chunk('IHDR', head), chunk('PLTE', Buffer.from(palette.flatMap((p) => [p >> 16, p >> 8 & 255, p & 255]))),
    chunk('IDAT', deflateSync(raw, { level: 9 })), chunk('IEND', Buffer.alloc(0))])
}

/** Undoes the filters of PNG's lines (PNG specification, section 9); gives a number 0xRRGGBB per pixel. */
function unfilter(raw, width, height, channels) {
  const line = width * channels
  const pixels = new Uint32Array(width * height)
  let before = new Uint8Array(line)
  for (let y = 0; y < height; y++) {
    const kind = raw[y * (line + 1)]
    const now = new Uint8Array(raw.subarray(y * (line + 1) + 1, (y + 1) * (line + 1)))
    for (let i = 0; i < line; i++) {
      const a = i < channels ? 0 : now[i - channels]
      const b = before[i]
      const c = i < channels ? 0 : before[i - channels]
      now[i] += [0, a, b, (a + b) >> 1, paeth(a, b, c)][kind]
    }
    for (let x = 0; x < width; x++) pixels[y * width + x] = now[x * channels] << 16 | now[x * channels + 1] << 8 | now[x * channels + 2]
    before = now
  }
  return pixels
}

function paeth(a, b, c) {
  const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)]
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c
}

function chunk(kind, data) {
  const body = Buffer.concat([Buffer.from(kind, 'latin1'), data])
  const out = Buffer.alloc(body.length + 8)
  out.writeUInt32BE(data.length, 0)
  body.copy(out, 4)
  out.writeUInt32BE(crc32(body), body.length + 4)
  return out
}
