/**
 * Shell text that starts 132 processes which sleep for `mark` seconds, by which they are known:
 * plain children, sessions of their own, and daemons whose parents have ended. Says `ready` when
 * all are begun, and waits.
 */
export function treeOf(mark: number | string): string {
  return `for i in $(seq 33); do
  sleep ${mark} &
  setsid sleep ${mark} &
  (setsid bash -c 'sleep ${mark} & sleep ${mark} & exit' &)
done
echo ready; wait`
}
