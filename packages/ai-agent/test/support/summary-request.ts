import { summaryMessages } from '../../src/loop/summary.ts'

const [request] = summaryMessages([], 1_000).slice(-1)

/** The last message of every request for a summary. */
export const SUMMARY_REQUEST = typeof request?.content === 'string' ? request.content : ''
