import { execFile, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const sources = fileURLToPath(new URL('../../../../docker/sandbox', import.meta.url))

/**
 * Compiled once for all tests, here: many of them want one, and compiling takes longer than most of
 * them.
 */
const CACHE = fileURLToPath(new URL('../../../node_modules/.cache/sandlot-sbxd/', import.meta.url))

/**
 * sbxd and its session library in this directory, every warning an error. Returns the binary's
 * path.
 */
export async function buildSbxd(directory: string): Promise<string> {
  return buildOnce(directory, '', '-O2 -Werror')
}

/** The same as on a kernel without openat2(2): every path is walked step by step. */
export async function buildWalkingSbxd(directory: string): Promise<string> {
  return buildOnce(directory, '-walking', '-O2 -Werror -DCALL_OPENAT2=-1')
}

/** The same as on a kernel that does not name the process behind a connection. */
export async function buildUnpinnedSbxd(directory: string): Promise<string> {
  return buildOnce(directory, '-unpinned', '-O2 -Werror -DPEER_PIDFD=4095')
}

/**
 * The sbxd that deployments ran before it remembered acknowledged commands: their sandboxes go on
 * with it.
 */
export async function buildOlderSbxd(directory: string): Promise<string> {
  const older = join(directory, 'older')
  await mkdir(older, { recursive: true })
  const archive = join(directory, 'older.tar')
  await promisify(execFile)('git', ['-C', sources, 'archive', `--output=${archive}`, OLDER, '.'])
  await promisify(execFile)('tar', ['-xf', archive, '-C', older])
  return buildIn(join(CACHE, `${OLDER}-older`), older, directory, '-O2')
}

const OLDER = 'e8fef566'

/** Undefined: it can be built. */
export function whyNoOlderSbxd(): string | undefined {
  const known = spawnSync('git', ['-C', sources, 'cat-file', '-e', `${OLDER}^{commit}`])
  return known.status === 0 ? undefined : `the history of this checkout does not reach back to ${OLDER}`
}

async function buildOnce(directory: string, kind: string, flags: string): Promise<string> {
  return buildIn(join(CACHE, (await sourcesHash()) + kind), sources, directory, flags)
}

async function buildIn(folder: string, from: string, directory: string, flags: string): Promise<string> {
  await mkdir(folder, { recursive: true })
  // The first one builds, the others wait for it and find the work done.
  const build = ['make', '-s', '-C', from, `OUT=${join(folder, 'sbxd')}`, `CFLAGS=${flags}`]
  await promisify(execFile)('flock', [join(folder, 'lock'), ...build])
  for (const name of ['sbxd', 'session.so']) await copyFile(join(folder, name), join(directory, name))
  return join(directory, 'sbxd')
}

async function sourcesHash(): Promise<string> {
  const hash = createHash('sha256').update(await readFile(join(sources, 'Makefile')))
  for (const folder of ['src', 'session']) {
    for (const name of (await filesBelow(folder)).toSorted())
      hash.update(name).update(await readFile(join(sources, name)))
  }
  return hash.digest('hex').slice(0, 16)
}

/**
 * The same, not static, and ended at once by any misuse of memory and any undefined behaviour.
 * Needs clang.
 */
export async function buildSanitizedSbxd(directory: string): Promise<string> {
  const binary = join(directory, 'sbxd')
  const library = join(directory, 'session.so')
  await make([`SANITIZED=${binary}`, `OUT=${binary}`, 'sanitized', library])
  return binary
}

/** The whole supervisor under libFuzzer. Needs clang. */
export async function buildFuzzer(directory: string): Promise<string> {
  const binary = join(directory, 'fuzz-sbxd')
  await make([`FUZZ=${binary}`, 'fuzz'])
  return binary
}

/**
 * Why this machine cannot build what needs clang's own run-time libraries; undefined when it can.
 */
export function whyNoFuzzer(): string | undefined {
  const asked = spawnSync('clang', ['-print-runtime-dir'], { encoding: 'utf8' })
  if (asked.status !== 0) return 'clang is not installed'
  const folder = asked.stdout.trim()
  const there =
    existsSync(folder) && readdirSync(folder).some((name) => name.startsWith('libclang_rt.fuzzer'))
  return there ? undefined : `no libclang_rt.fuzzer in ${folder}; Debian: libclang-rt-<version>-dev`
}

/** Every C file of the supervisor, as `ANALYSED` names them. */
export async function cFiles(): Promise<string[]> {
  const found = await Promise.all(['src', 'session'].map(filesBelow))
  return found.flat().filter((name) => name.endsWith('.c'))
}

/** Rejects with the analyser's words when it finds anything in these files. Needs clang. */
export async function analyse(files: readonly string[]): Promise<void> {
  await make(['-k', '-j2', `ANALYSED=${files.join(' ')}`, 'analyse'])
}

async function filesBelow(folder: string): Promise<string[]> {
  const found = await readdir(join(sources, folder), { recursive: true, withFileTypes: true })
  return found
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(sources, join(parentPath, name)))
}

async function make(args: readonly string[]): Promise<void> {
  await promisify(execFile)('make', ['-s', '-C', sources, ...args], { maxBuffer: 16 * 1024 * 1024 })
}
