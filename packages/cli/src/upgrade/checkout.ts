/** The versions of a clone, by git. */
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
  const options = { cwd: root, environment, fix: 'What git said is above. Nothing has changed.' }
  return async (...args) => (await run('git', ['-C', root, ...args], options)).trim()
}

async function succeeds(answer: Promise<unknown>): Promise<boolean> {
  return answer.then(
    () => true,
    () => false,
  )
}

/**
 * What is here, and what `version` of `repository` is: a tag, a branch or a commit; by default the
 * newest of the branch that is checked out. Fetches it and changes nothing else.
 * @throws StepError where there is nothing to upgrade to, or the clone has changes of its own.
 */
export async function findVersions(
  config: CliConfig,
  { version, repository = 'origin' }: { version?: string; repository?: string },
): Promise<Versions> {
  const git = gitOf(config)
  const top = await git('rev-parse', '--show-toplevel').catch(() => undefined)
  if (top !== config.root)
    throw new StepError(
      `${config.root} is no clone of git, so nothing can be fetched into it.`,
      'Clone Sandlot, and set SANDLOT_DATA to this data folder there; docs/backup.md says how.',
    )
  if ((await git('status', '--porcelain', '--untracked-files=no')) !== '')
    throw new StepError(
      'Files of this clone were changed, and an upgrade would lose that.',
      'git status shows them: commit them elsewhere or take them back, then run this again.',
    )
  const current = await git('rev-parse', 'HEAD')
  const branch = await git('symbolic-ref', '--quiet', '--short', 'HEAD').catch(() => '')
  const target = await fetchTarget(git, { version, repository, branch })
  const isNewer = current !== target && !(await succeeds(git('merge-base', '--is-ancestor', target, current)))
  if (!isNewer)
    throw new StepError(
      current === target
        ? 'This is that version already; nothing was done.'
        : 'That version is older than this one; nothing was done.',
      'To go back, restore a backup of that version; docs/backup.md says how.',
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

/** Makes the files those of `commit`; what an interrupted switch left is overwritten. */
export async function switchTo(config: CliConfig, commit: string): Promise<void> {
  await gitOf(config)('checkout', '--quiet', '--force', '--detach', commit)
}

/** The branch that was checked out, at `commit`, which the files are of. */
export async function attachBranch(config: CliConfig, branch: string, commit: string): Promise<void> {
  await gitOf(config)('checkout', '--quiet', '-B', branch, commit)
}
