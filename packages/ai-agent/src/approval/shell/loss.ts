/** One thing that a call would delete or overwrite. */

export interface Loss {
  /**
   * - `replaces`: overwrites a file, and leaves a folder as it is.
   * - `moves`: to `into`, a loss where that is outside of the workspace.
   * - `untars`, `unzips`: the files of an archive that are there in the folder `into`.
   * - `discards`: what is not committed in the repository there; `resets`: untracked files as well.
   * - `restores`: what is not committed of this path in the repository at `into`; `checks`: so, if
   *   it is a path and not the name of a commit.
   * - `runs`: nothing, if no program is named by the configuration of the repository there, which
   *   git only reads.
   */
  does:
    | 'deletes'
    | 'overwrites'
    | 'replaces'
    | 'moves'
    | 'untars'
    | 'unzips'
    | 'discards'
    | 'resets'
    | 'restores'
    | 'checks'
    | 'runs'
  /**
   * Absolute, or from where the command line begins; several where a `cd` may fail. A folder stands
   * for all below it. Undefined: not known before it runs.
   */
  paths: readonly string[] | undefined
  into?: string | undefined
}

/** The same for the same loss, whenever the line is read. */
export function lossKey({ does, paths, into }: Loss): string {
  return JSON.stringify([does, paths, into])
}

/** `path` undefined: not known before it runs. */
export function lost(does: Loss['does'], path: string | undefined, into?: string): Loss[] {
  return [{ does, paths: path === undefined ? undefined : [path], into }]
}

/** `paths` as of `lost`. */
export const each = (does: Loss['does'], paths: readonly (string | undefined)[]): Loss[] =>
  paths.flatMap((path) => lost(does, path))

/** Files that are written; `-` is none. */
export const written = (paths: readonly (string | undefined)[]): Loss[] =>
  each(
    'overwrites',
    paths.filter((path) => path !== '-'),
  )

/** Something that is not known before it runs. */
export const UNKNOWN: readonly Loss[] = lost('overwrites', undefined)
