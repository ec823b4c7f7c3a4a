/**
 * Losses of utilities for files, archives and downloads, by their words. A row has the known
 * options of one program, and what its operands lose with them.
 */
import { posix } from 'node:path'
import { type Loss, UNKNOWN, each, lost, written } from './loss.ts'
import {
  lossesInPlace,
  lossesOfAwk,
  lossesOfDd,
  lossesOfFind,
  lossesOfSed,
  lossesOfTar,
} from './losses-languages.ts'
import { type Loses, lossesTable } from './losses-table.ts'
import { type Arguments, SORT, UNIQ, XXD, asXxd } from './options.ts'
import type { ArgWord } from './words.ts'

const COPIES =
  'force interactive update=? verbose target-directory= no-target-directory strip-trailing-slashes'

const UTILITIES = lossesTable(
  `
rm: -rRfidvI recursive force verbose dir interactive=? one-file-system preserve-root=? no-preserve-root | deletes
unlink: | deletes
shred: -fuvxz -ns= force iterations= size= remove=? verbose exact zero | shreds
mv: -finuvTZ -t= no-clobber ${COPIES} | copies moving
cp: -aRrpPfiuvTdHLlnsxZ -t= no-clobber ${COPIES} archive recursive dereference no-dereference preserve=? no-preserve= parents link symbolic-link one-file-system reflink=? sparse= remove-destination attributes-only | copies
install: -cCDpsTvd -mogt= ${COPIES} directory mode= owner= group= compare preserve-timestamps strip | copies unless d directory
ln: -fiLnPrsTv -t= ${COPIES} symbolic no-dereference relative logical physical | links
rsync: -avzrltgoDpPnhqciuxHAXSKLkWOJ -e= archive verbose compress recursive links perms times group owner progress partial dry-run human-readable quiet checksum update existing ignore-existing exclude= include= exclude-from= include-from= info= stats itemize-changes no-perms no-owner no-group mkpath | fetches unless n dry-run
scp: -rpqCv346 -PilFcJ= | fetches
tee sponge: -aip append ignore-interrupts output-error=? | overwrites unless a append
truncate: -co -rs= no-create io-blocks reference= size= | overwrites
fallocate: -nvx -lo= keep-size length= offset= verbose posix | nothing
sort: ${SORT} -oTS= output= temporary-directory= buffer-size= parallel= | writes o output
shuf: -erz -nio= echo input-range= head-count= output= random-source= repeat zero-terminated | writes o output
uniq: ${UNIQ} | second
xxd: ${XXD} | second
iconv: -cls -fto= from-code= to-code= output= list silent | writes o output
tree: -adfilxpsugDFqNQhCnrtvUXJ -LPIo= noreport dirsfirst filesfirst gitignore prune du si | writes o
dos2unix unix2dos: -kq | overwrites
patch: -NRstflucE -piFdor= strip= input= dry-run reverse forward silent quiet batch force fuzz= directory= output= reject-file= | patches unless dry-run
rename prename file-rename: -nv nono verbose no-act | unknown unless n nono no-act
gzip gunzip pigz unpigz: -cdfklnNqrtv0123456789 stdout to-stdout decompress uncompress force keep list test quiet verbose recursive no-name name best fast | compresses .gz unless c stdout to-stdout l list t test
bzip2 bunzip2 pbzip2 lbzip2: -cdfkqtvz0123456789 stdout decompress compress force keep test quiet verbose best fast | compresses .bz2 unless c stdout t test
xz unxz: -cdfklqtvze0123456789T stdout to-stdout decompress compress force keep list test quiet verbose extreme | compresses .xz unless c stdout to-stdout l list t test
lzma unlzma: -cdfkqtvz stdout decompress force keep test | compresses .lzma unless c stdout t test
lzip lunzip plzip: -cdfkqtv stdout decompress force keep test | compresses .lz unless c stdout t test
compress uncompress: -cdfv | compresses .Z unless c
zstd unzstd zstdmt: -cdfklqtvz0123456789T -o= stdout decompress compress force keep list test quiet verbose rm ultra | zstd unless c stdout l list t test
zip: -rqvjyuoX0123456789g@ recurse-paths quiet junk-paths symlinks update | zips
unzip: -qnocljptvaCLVzZ1 -d= | unzips unless n c l p t v z Z
ar 7z 7za 7zr rar unrar: | verbs t tv l
jar: -tvf list file= | verbs t tf tvf unless t list
cpio: -itov list create | unknown unless t o list create
lz4 brotli: -tkq test list | unknown unless t test list
curl: -sSfLkiIvgG#46012NnjaOR -XHdAeubmrxwYyzEFPtTCoDc= silent show-error fail fail-with-body location insecure include head verbose get compressed request= header= data= data-raw= data-binary= data-urlencode= json= user-agent= referer= user= cookie= max-time= connect-timeout= retry= retry-delay= retry-max-time= retry-connrefused retry-all-errors range= proxy= noproxy= write-out= form= form-string= url= cacert= cert= key= http1.1 http2 http3 ipv4 ipv6 no-progress-meter progress-bar location-trusted path-as-is globoff resolve= max-redirs= limit-rate= no-buffer upload-file= unix-socket= create-dirs output= remote-name remote-time cookie-jar= dump-header= etag-save= etag-compare= continue-at= | downloads
wget: -nqvSd46b -OoaPtTUiQwl= quiet no-verbose server-response output-document= output-file= append-output= directory-prefix= tries= timeout= user-agent= header= post-data= method= body-data= no-check-certificate no-clobber show-progress progress= spider user= password= ca-certificate= no-proxy wait= limit-rate= content-on-error input-file= | writes O output-document o output-file
split csplit mkfs pax wipe srm ed ex vi vim bsdtar lzop mmv uudecode aria2c: | unknown
`,
  {
    copies,
    links,
    compresses,
    downloads,
    fetches: (given) => (/^[^/]+:/.test(given.operands.at(-1) ?? '') ? [] : copies(given, ['fetching'])),
    shreds: ({ operands }) => [...each('overwrites', operands), ...each('deletes', operands)],
    second: ({ operands }) => written(operands.slice(1)),
    patches: ({ operands, has }) =>
      operands.length === 0 || has('o', 'output', 'r', 'reject-file', 'd', 'directory')
        ? UNKNOWN
        : each('overwrites', operands.slice(0, 1)),
    zstd: ({ operands, has, values }) => [
      ...each(
        'overwrites',
        has('o')
          ? values('o')
          : operands.flatMap((path) => [path && `${path}.zst`, path?.replace(/\.\w+$/, '')]),
      ),
      ...(has('rm') ? each('deletes', operands) : []),
    ],
    zips: ({ operands: [archive] }) =>
      lost('overwrites', archive && (posix.extname(archive) === '' ? `${archive}.zip` : archive)),
    unzips: ({ operands: [archive], has, values }) => {
      const [into] = has('d') ? values('d') : ['.']
      if (archive === undefined || into === undefined) return UNKNOWN
      // With these the files have other names than in the archive.
      return has('j', 'L') ? lost('overwrites', into) : lost('unzips', archive, into)
    },
  },
)

const LANGUAGES: ReadonlyMap<string, (words: readonly ArgWord[]) => readonly Loss[]> = new Map([
  ['tar', lossesOfTar],
  ['sed', lossesOfSed],
  ['perl', lossesInPlace],
  ['ruby', lossesInPlace],
  ['awk', lossesOfAwk],
  ['gawk', lossesOfAwk],
  ['mawk', lossesOfAwk],
  ['dd', lossesOfDd],
  ['find', lossesOfFind],
  ['strace', (words) => (words.some(({ prefix }) => /^-[a-zA-Z]*o/.test(prefix)) ? UNKNOWN : [])],
])

/** Programs that lose files by their words. */
export const LOSING: ReadonlySet<string> = new Set([
  ...UTILITIES.names,
  ...LANGUAGES.keys(),
  'git',
  'time',
  'script',
])

export function lossesOfProgram(program: string, words: readonly ArgWord[]): readonly Loss[] {
  const name = program.replace(/^mkfs\..*/, 'mkfs')
  const language = LANGUAGES.get(name)
  if (language !== undefined) return language(words)
  return UTILITIES.has(name) ? UTILITIES.losses(name, asRead(name, words)) : []
}

/** Without the patterns of `zip … -x a b`; `wget -nc` is one option. */
function asRead(name: string, words: readonly ArgWord[]): readonly ArgWord[] {
  if (name === 'xxd') return asXxd(words)
  if (name === 'wget') return words.filter(({ literal }) => literal !== '-nc')
  const patterns =
    name === 'zip' ? words.findIndex(({ literal }) => literal === '-x' || literal === '-i') : -1
  const behind = words.slice(patterns + 1)
  return patterns < 0 || behind.some(({ prefix }) => prefix.startsWith('-'))
    ? words
    : words.slice(0, patterns)
}

/** The last operand is a file, or a folder that gets the others under their own names. */
function copies({ operands, has, values }: Arguments, [how]: Parameters<Loses>[1]): readonly Loss[] {
  const fetching = how === 'fetching'
  const into = fetching ? [] : values('t', 'target-directory')
  const to = into.length > 0 ? into[0] : operands.at(-1)
  const from = into.length > 0 ? operands : operands.slice(0, -1)
  if (from.length === 0 || to === undefined || from.includes(undefined)) return UNKNOWN
  const paths = from.map((path = '') => (fetching ? path.replace(/^[^/:]*::?/, '') : path))
  const moved = how === 'moving' ? paths.flatMap((path) => lost('moves', path, to)) : []
  if (has('n', 'no-clobber') && !has('f', 'force', 'i', 'interactive', 'u', 'update')) return moved
  // All that is in a folder is meant, by its name or by the end of that.
  const whole = fetching ? /(^|\/)\.{0,2}$/ : /(^|\/)\.{1,2}$/
  if (has('T', 'no-target-directory') || paths.some((path) => whole.test(path)))
    return [...moved, ...lost('overwrites', to)]
  const names = paths.map((path) =>
    posix.join(to, has('parents') ? path.replace(/^\/+/, '') : posix.basename(path)),
  )
  return [...moved, ...lost('replaces', to), { does: 'overwrites', paths: names }]
}

function links(given: Arguments, says: readonly string[]): readonly Loss[] {
  const { operands, has } = given
  if (!has('f', 'force', 'i', 'interactive')) return []
  const [only] = operands
  return operands.length === 1 && only !== undefined
    ? lost('overwrites', posix.basename(only))
    : copies(given, says)
}

/** They take the file away that they have read, and may add the end of its name themselves. */
function compresses({ operands, has }: Arguments, [suffix = '']: readonly string[]): readonly Loss[] {
  const made = operands.map(
    (path) => path && (path.endsWith(suffix) ? path.slice(0, -suffix.length) : path + suffix),
  )
  const overwritten = has('f', 'force')
    ? each('overwrites', has('r', 'recursive') ? [...operands, ...made] : made)
    : []
  return has('k', 'keep') ? overwritten : [...overwritten, ...each('deletes', [...operands, ...made])]
}

function downloads({ operands, has, values }: Arguments): readonly Loss[] {
  const files = values('o', 'output', 'D', 'dump-header', 'c', 'cookie-jar', 'etag-save')
  const urls = [...operands, ...values('url')]
  // curl writes there itself, or puts a part of the address in.
  if (
    files.some((file) => file?.includes('#') === true) ||
    values('w', 'write-out').some((text) => text === undefined || /%output|^@/.test(text)) ||
    (has('T', 'upload-file') && urls.some((url) => url === undefined || /^file:/i.test(url)))
  )
    return UNKNOWN
  const named = has('O', 'remote-name')
    ? urls.map((url) => /^[^?#{}[\]]*\/([^/?#{}[\]]+)(?:[?#].*)?$/.exec(url ?? '')?.[1])
    : []
  return written([...files, ...named])
}
