/**
 * What utilities for files, archives and downloads lose by their words. Of each the options are
 * listed that are known, and what its operands lose with them; any other option may lose anything.
 */
import { posix } from 'node:path'
import { type Arguments, readArguments } from './arguments.ts'
import { type Loss, UNKNOWN, each, lost } from './loss.ts'
import {
  lossesInPlace,
  lossesOfAwk,
  lossesOfDd,
  lossesOfFind,
  lossesOfSed,
  lossesOfTar,
} from './losses-languages.ts'
import { type Options, SORT, UNIQ } from './options.ts'
import type { ArgWord } from './words.ts'

interface Utility {
  options: Options
  /** Its first operand is not a file that it writes, so a quoted variable there is trusted. */
  reads?: true
  loses: (given: Arguments) => readonly Loss[]
}

const outputs =
  (...names: string[]) =>
  ({ values }: Arguments) =>
    each(
      'overwrites',
      values(...names).filter((value) => value !== '-'),
    )
const all =
  (does: Loss['does']) =>
  ({ operands }: Arguments) =>
    each(does, operands)

/** The last operand is a file, or a folder that gets the others under their own names. */
function intoLast(
  given: Arguments,
  { moves = false, keeps = 'n', whole = /(^|\/)\.{1,2}$/ } = {},
): readonly Loss[] {
  const { operands, has, values } = given
  const [folder] = values('t', 'target-directory')
  const to = has('t', 'target-directory') ? folder : operands.at(-1)
  const from = has('t', 'target-directory') ? operands : operands.slice(0, -1)
  if (from.length === 0 || to === undefined || from.includes(undefined)) return UNKNOWN
  const names = from.map((path = '') =>
    posix.join(to, has('parents') ? path.replace(/^\/+/, '') : posix.basename(path)),
  )
  // Where `whole` is the end of a path, all that is in it is meant.
  const all = has('T', 'no-target-directory') || from.some((path = '') => whole.test(path))
  return [
    ...(moves ? from.flatMap((path) => lost('moves', path, to)) : []),
    ...(has(keeps, 'no-clobber')
      ? []
      : all
        ? lost('overwrites', to)
        : [...lost('replaces', to), { does: 'overwrites' as const, paths: names }]),
  ]
}

/** They take the file away that they have read. */
function compresses(suffix: string): Utility {
  return {
    options: {
      flags: 'cdfklnNqrtvz0123456789Te',
      long: 'stdout to-stdout decompress uncompress compress force keep list test quiet verbose recursive no-name name best fast extreme',
    },
    loses: ({ operands, has }) => {
      if (has('c', 'stdout', 'to-stdout', 'l', 'list', 't', 'test')) return []
      const made = operands.map(
        (path) => path && (path.endsWith(suffix) ? path.slice(0, -suffix.length) : path + suffix),
      )
      return [
        ...(has('k', 'keep') ? [] : each('deletes', operands)),
        ...(has('f', 'force') ? each('overwrites', made) : []),
      ]
    },
  }
}

const GZIP = compresses('.gz')
const BZIP = compresses('.bz2')
const XZ = compresses('.xz')
const COPIES =
  'force interactive update=? verbose backup=? suffix= target-directory= no-target-directory strip-trailing-slashes no-clobber'

const UTILITIES: Readonly<Record<string, Utility>> = {
  rm: {
    options: {
      flags: 'rRfidvI',
      long: 'recursive force verbose dir interactive=? one-file-system preserve-root=? no-preserve-root',
    },
    loses: all('deletes'),
  },
  unlink: { options: {}, loses: all('deletes') },
  shred: {
    options: { flags: 'fuvxz', valued: 'ns', long: 'force iterations= size= remove=? verbose exact zero' },
    loses: ({ operands }) => [...each('overwrites', operands), ...each('deletes', operands)],
  },
  mv: {
    options: { flags: 'finuvTZb', valued: 'tS', long: COPIES },
    loses: (given) => intoLast(given, { moves: true }),
  },
  cp: {
    options: {
      flags: 'aRrpPfiuvTbdHLlnsxZ',
      valued: 'tS',
      long: `${COPIES} archive recursive dereference no-dereference preserve=? no-preserve= parents link symbolic-link one-file-system reflink=? sparse= remove-destination attributes-only`,
    },
    loses: (given) => intoLast(given),
  },
  install: {
    options: {
      flags: 'bcCDpsTvd',
      valued: 'mogtS',
      long: `${COPIES} directory mode= owner= group= compare preserve-timestamps strip`,
    },
    loses: (given) => (given.has('d', 'directory') ? [] : intoLast(given)),
  },
  ln: {
    options: {
      flags: 'bfiLnPrsTv',
      valued: 'tS',
      long: `${COPIES} symbolic no-dereference relative logical physical`,
    },
    loses: (given) => {
      if (!given.has('f', 'force')) return []
      const [only] = given.operands
      return given.operands.length === 1 && only !== undefined
        ? lost('overwrites', posix.basename(only))
        : intoLast(given, { keeps: 'no-clobber' })
    },
  },
  rsync: {
    options: {
      flags: 'avzrltgoDpPnhqciuxHAXSRKLkWOJ',
      valued: 'e',
      long: 'archive verbose compress recursive links perms times group owner progress partial dry-run human-readable quiet checksum update existing ignore-existing exclude= include= exclude-from= include-from= info= stats itemize-changes no-perms no-owner no-group mkpath',
    },
    loses: (given) =>
      given.has('n', 'dry-run') || /^[^/]+:/.test(given.operands.at(-1) ?? '')
        ? []
        : intoLast(given, { whole: /(^|\/)\.{0,2}$/ }),
  },
  scp: {
    options: { flags: 'rpqCv346', valued: 'PilFcJ' },
    loses: (given) => (/^[^/]+:/.test(given.operands.at(-1) ?? '') ? [] : intoLast(given)),
  },
  tee: {
    options: { flags: 'aip', long: 'append ignore-interrupts output-error=?' },
    reads: true,
    loses: ({ operands, has }) => (has('a', 'append') ? [] : each('overwrites', operands)),
  },
  sponge: {
    options: { flags: 'a' },
    loses: ({ operands, has }) => (has('a') ? [] : each('overwrites', operands)),
  },
  truncate: {
    options: { flags: 'co', valued: 'rs', long: 'no-create io-blocks reference= size=' },
    loses: all('overwrites'),
  },
  fallocate: {
    options: { flags: 'nvx', valued: 'lo', long: 'keep-size length= offset= verbose posix' },
    loses: () => [],
  },
  sort: {
    options: {
      ...SORT,
      valued: `${SORT.valued}oTS`,
      long: `${SORT.long} output= temporary-directory= buffer-size= parallel=`,
    },
    reads: true,
    loses: outputs('o', 'output'),
  },
  shuf: {
    options: {
      flags: 'erz',
      valued: 'nio',
      long: 'echo input-range= head-count= output= random-source= repeat zero-terminated',
    },
    reads: true,
    loses: outputs('o', 'output'),
  },
  uniq: {
    options: { ...UNIQ, most: undefined },
    reads: true,
    loses: ({ operands }) =>
      each(
        'overwrites',
        operands.slice(1).filter((path) => path !== '-'),
      ),
  },
  xxd: {
    options: { flags: 'abEeiupCr', valued: 'cglos' },
    reads: true,
    loses: ({ operands }) => each('overwrites', operands.slice(1)),
  },
  iconv: {
    options: { flags: 'cls', valued: 'fto', long: 'from-code= to-code= output= list silent' },
    reads: true,
    loses: outputs('o', 'output'),
  },
  dos2unix: { options: { flags: 'kq' }, loses: all('overwrites') },
  unix2dos: { options: { flags: 'kq' }, loses: all('overwrites') },
  ed: { options: { flags: 's' }, loses: all('overwrites') },
  ex: { options: { flags: 's' }, loses: all('overwrites') },
  patch: {
    options: {
      flags: 'NRstflucEb',
      valued: 'piFdorV',
      long: 'strip= input= dry-run reverse forward silent quiet batch force fuzz= directory= output= reject-file= backup',
    },
    loses: ({ operands, has }) =>
      has('dry-run')
        ? []
        : operands.length === 0 || has('o', 'output', 'r', 'reject-file', 'd', 'directory')
          ? UNKNOWN
          : each('overwrites', operands.slice(0, 1)),
  },
  rename: {
    options: { flags: 'nv', long: 'nono verbose no-act' },
    loses: ({ has }) => (has('n', 'nono', 'no-act') ? [] : UNKNOWN),
  },
  gzip: GZIP,
  gunzip: GZIP,
  bzip2: BZIP,
  bunzip2: BZIP,
  xz: XZ,
  unxz: XZ,
  pigz: GZIP,
  pbzip2: BZIP,
  lzma: compresses('.lzma'),
  lzip: compresses('.lz'),
  compress: compresses('.Z'),
  uncompress: compresses('.Z'),
  zstd: {
    options: {
      flags: 'cdfklqtvz0123456789T',
      valued: 'o',
      long: 'stdout decompress compress force keep list test quiet verbose rm ultra',
    },
    loses: (given) => {
      const { operands, has, values } = given
      if (has('c', 'stdout', 'l', 'list', 't', 'test')) return []
      const made = operands.map((path) => path && (path.endsWith('.zst') ? path.slice(0, -4) : `${path}.zst`))
      const to = has('o') ? values('o') : made
      return [
        ...(has('f', 'force') ? each('overwrites', to) : []),
        ...(has('rm') ? each('deletes', operands) : []),
      ]
    },
  },
  zip: {
    options: { flags: 'rqvjyuoX0123456789g', long: 'recurse-paths quiet junk-paths symlinks update' },
    loses: ({ operands: [archive] }) =>
      lost('overwrites', archive && (posix.extname(archive) === '' ? `${archive}.zip` : archive)),
  },
  unzip: {
    options: { flags: 'qnoljptvaCLVzZ1', valued: 'd' },
    loses: ({ operands: [archive], has, values: valuesOf }) =>
      has('n', 'l', 'p', 't', 'v', 'z', 'Z')
        ? []
        : archive === undefined || valuesOf('d').includes(undefined)
          ? UNKNOWN
          : lost('unzips', archive, valuesOf('d')[0] ?? '.'),
  },
  curl: {
    options: {
      flags: 'sSfLkiIvgG#46012NnjaOR',
      valued: 'XHdAeubmrxwYyzEFPtTCoDc',
      long: 'silent show-error fail fail-with-body location insecure include head verbose get compressed request= header= data= data-raw= data-binary= data-urlencode= json= user-agent= referer= user= cookie= max-time= connect-timeout= retry= retry-delay= retry-max-time= retry-connrefused retry-all-errors range= proxy= noproxy= write-out= form= form-string= url= cacert= cert= key= http1.1 http2 http3 ipv4 ipv6 no-progress-meter progress-bar location-trusted path-as-is globoff resolve= max-redirs= limit-rate= no-buffer upload-file= unix-socket= create-dirs output= remote-name remote-time cookie-jar= dump-header= etag-save= etag-compare= continue-at=',
    },
    reads: true,
    loses: downloads,
  },
  wget: {
    options: {
      flags: 'nqvSd46b',
      valued: 'OoaPtTUiQwl',
      long: 'quiet no-verbose server-response output-document= output-file= append-output= directory-prefix= tries= timeout= user-agent= header= post-data= method= body-data= no-check-certificate no-clobber show-progress progress= spider user= password= ca-certificate= no-proxy wait= limit-rate= content-on-error input-file=',
    },
    reads: true,
    loses: outputs('O', 'output-document', 'o', 'output-file'),
  },
}

/** Of these no form is known that loses nothing, but for those that say so. */
const ALWAYS: Readonly<Record<string, RegExp>> = {
  split: /^--(help|version)$/,
  csplit: /^--(help|version)$/,
  cpio: /^-(t|o|-list|-create)$/,
  ar: /^[tp]v?$/,
  '7z': /^[lt]$/,
  '7za': /^[lt]$/,
  mkfs: /^--help$/,
  jar: /^-?t/,
  pax: /^--help$/,
  lz4: /^-(t|-test|-list)$/,
  brotli: /^(-t|--test)$/,
  wipe: /^-h$/,
  srm: /^--help$/,
}

/** Programs that lose files by their words. */
export const LOSING: ReadonlySet<string> = new Set([
  ...Object.keys(UTILITIES),
  ...Object.keys(ALWAYS),
  ...'tar bsdtar sed perl ruby awk gawk mawk dd find git time script'.split(' '),
])

export function lossesOfProgram(name: string, words: readonly ArgWord[]): readonly Loss[] {
  const utility = Object.hasOwn(UTILITIES, name) ? UTILITIES[name] : undefined
  if (utility !== undefined) {
    const given = readArguments(utility.options, asRead(name, words), utility.reads)
    return given === undefined ? UNKNOWN : utility.loses(given)
  }
  const always = name.replace(/^mkfs\..*/, 'mkfs')
  const harmless = Object.hasOwn(ALWAYS, always) ? ALWAYS[always] : undefined
  if (harmless !== undefined) return harmless.test(words[0]?.literal ?? '') ? [] : UNKNOWN
  switch (name) {
    case 'tar':
    case 'bsdtar':
      return lossesOfTar(words)
    case 'sed':
      return lossesOfSed(words)
    case 'perl':
    case 'ruby':
      return lossesInPlace(words)
    case 'awk':
    case 'gawk':
    case 'mawk':
      return lossesOfAwk(words)
    case 'dd':
      return lossesOfDd(words)
    case 'find':
      return lossesOfFind(words)
    default:
      return []
  }
}

/** Without the patterns of `zip … -x a b`; `wget -nc` is one option. */
function asRead(name: string, words: readonly ArgWord[]): readonly ArgWord[] {
  if (name === 'wget') return words.filter(({ literal }) => literal !== '-nc')
  const patterns =
    name === 'zip' ? words.findIndex(({ literal }) => literal === '-x' || literal === '-i') : -1
  const behind = words.slice(patterns + 1)
  return patterns < 0 || behind.some(({ prefix }) => prefix.startsWith('-'))
    ? words
    : words.slice(0, patterns)
}

function downloads({ operands, has, values }: Arguments): readonly Loss[] {
  const files = values('o', 'output', 'D', 'dump-header', 'c', 'cookie-jar', 'etag-save').filter(
    (file) => file !== '-',
  )
  // curl writes there itself, or puts a part of the address in.
  if (
    files.some((file) => file?.includes('#') === true) ||
    values('w', 'write-out').some((text) => text === undefined || /%output|^@/.test(text))
  )
    return UNKNOWN
  const named = has('O', 'remote-name')
    ? [...operands, ...values('url')].map(
        (url) => /^[^?#{}[\]]*\/([^/?#{}[\]]+)(?:[?#].*)?$/.exec(url ?? '')?.[1],
      )
    : []
  return each('overwrites', [...files, ...named])
}
