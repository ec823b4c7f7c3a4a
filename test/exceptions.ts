const MOST = 10

/** Packages with too many exceptions from one rule. `packages`: the package of each exception. */
export function exceptionProblems(packages: readonly string[]): string[] {
  return Object.entries(Object.groupBy(packages, (name) => name)).flatMap(([name, { length } = []]) =>
    (length ?? 0) > MOST
      ? [`${name}: ${length} exceptions, and a rule may have ${MOST} in a package; mend one of them instead`]
      : [],
  )
}
