/** Versions of a clone, through git. */
import type { CliConfig } from '../config.ts'
import { run } from '../programs/run.ts'
import { StepError } from '../steps.ts'

export interface Versions {
  from: { commit: string; name: string; branch?: string }
  to: { commit: string; name: string }
  movesBranch: boolean
}

type Git = (...args: string[]) => Promise<string>

function gitOf({ root, environment }: CliConfig): Git {
  const options = { cwd: root, environment, fix: 'The output of git is above. Nothing was changed.' }
  return async (...args) => (await run('git', ['-C', root, ...args], options)).trim()
}

async function succeeds(answer: Promise<unknown>): Promise<boolean> {
  return answer.then(
    () => true,
    () => false,
  )
}

/**
 * Fetches `version` of `repository`: a tag, a branch or a commit, by default the newest commit of
 * the current branch. Changes nothing else.
 * @throws StepError if there is nothing newer, or the clone has local changes.
 */
export async function findVersions(
  config: CliConfig,
  { version, repository = 'origin' }: { version?: string; repository?: string },
): Promise<Versions> {
  const git = gitOf(config)
  const top = await git('rev-parse', '--show-toplevel').catch(() => undefined)
  if (top !== config.root)
    throw new StepError(
      `${config.root} is not a git clone, so it cannot be upgraded.`,
      'Clone Sandlot and set SANDLOT_DATA to this data folder there; see docs/backup.md.',
    )
  if ((await git('status', '--porcelain', '--untracked-files=no')) !== '')
    throw new StepError(
      'This clone has local changes, which an upgrade would overwrite.',
      'See git status; commit the changes elsewhere or discard them, then run this again.',
    )
  const current = await git('rev-parse', 'HEAD')
  const branch = await git('symbolic-ref', '--quiet', '--short', 'HEAD').catch(() => '')
  const target = await fetchTarget(git, { version, repository, branch })
  const isNewer = current !== target && !(await succeeds(git('merge-base', '--is-ancestor', target, current)))
  if (!isNewer)
    throw new StepError(
      current === target
        ? 'This version is already installed; nothing was done.'
        : 'That version is older than the installed one; nothing was done.',
      'To go back, restore a backup made by the older version; see docs/backup.md.',
    )
  const follows = await succeeds(git('merge-base', '--is-ancestor', current, target))
  const name = (commit: string): Promise<string> => git('describe', '--tags', '--always', commit)
  return {
    from: { commit: current, name: await name(current), ...(branch === '' ? {} : { branch }) },
    to: { commit: target, name: version ?? (await name(target)) },
    movesBranch: version === undefined && branch !== '' && follows,
  }
}

async function fetchTarget(
  git: Git,
  { version, repository, branch }: { version: string | undefined; repository: string; branch: string },
): Promise<string> {
  if (version === undefined) {
    await git('fetch', '--quiet', '--tags', repository, branch === '' ? 'HEAD' : branch)
    return git('rev-parse', 'FETCH_HEAD')
  }
  await git('fetch', '--quiet', '--tags', repository)
  const found = await git('rev-parse', '--verify', '--quiet', `refs/tags/${version}^{commit}`).catch(() => '')
  if (found !== '') return found
  await git('fetch', '--quiet', repository, version)
  return git('rev-parse', 'FETCH_HEAD^{commit}')
}

/** Checks `commit` out, over the files of an interrupted switch. */
export async function switchTo(config: CliConfig, commit: string): Promise<void> {
  await gitOf(config)('checkout', '--quiet', '--force', '--detach', commit)
}

/** Checks out `branch`, moved to `commit`. */
export async function attachBranch(config: CliConfig, branch: string, commit: string): Promise<void> {
  await gitOf(config)('checkout', '--quiet', '-B', branch, commit)
}
