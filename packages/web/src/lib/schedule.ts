/** Hidden pages get no animation frames, but a title has to change and an answer has to be there when one comes back. */
const HIDDEN_MS = 200

/** Before the next paint; on a hidden page, soon. */
export function soon(work: () => void): void {
  if (document.visibilityState === 'hidden') setTimeout(work, HIDDEN_MS)
  else requestAnimationFrame(() => work())
}
