/** Options of `test/cluster/run.ts`: a given cluster, and an image that its nodes can pull. */
const GIVEN = ['--context', '--image']

/**
 * Arguments of Node that run a command next to a Kubernetes, which it starts and ends. An
 * option in `args` selects a running one instead. `command` receives the other arguments.
 */
export function nextToCluster(
  args: readonly string[],
  command: (others: readonly string[]) => readonly string[],
): string[] {
  const others = [...args]
  const given = GIVEN.flatMap((name) => {
    const at = others.indexOf(name)
    return at === -1 ? [] : others.splice(at, 2)
  })
  return ['--conditions=sandlot-source', 'test/cluster/run.ts', ...given, '--', ...command(others)]
}
