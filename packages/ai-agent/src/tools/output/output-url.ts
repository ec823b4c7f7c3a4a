/** Path on the service of a call's full output. */
export function outputUrl(sessionId: string, callId: string): string {
  return `/api/sessions/${encodeURIComponent(sessionId)}/outputs/${encodeURIComponent(callId)}`
}
