import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('..', import.meta.url))

export interface SourceFile {
  /** Relative to the repository, with `/`. */
  path: string
  text: string
}

/** Every file that is, or will be, in the repository: what git tracks and what it would not ignore. */
export function repositoryFiles(): string[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
  // A file deleted but not yet committed is still listed.
  return listed.split('\0').filter((path) => path !== '' && existsSync(join(ROOT, path)))
}

export function read(path: string): SourceFile {
  return { path, text: readFileSync(join(ROOT, path), 'utf8') }
}
