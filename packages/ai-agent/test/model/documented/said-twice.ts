/** Answers that say one thing twice: whole messages beside deltas or in their place, thoughts under two names. */
import { call, chunk, completion, events, piece, tools } from './answer.ts'
import type { DocumentedAnswers } from './answer.ts'

const perplexity = { baseUrl: 'https://api.perplexity.ai', model: 'sonar-reasoning' }
const minimax = { baseUrl: 'https://api.minimax.io/v1', model: 'MiniMax-M3' }
const relay = { baseUrl: 'http://relay:3000/v1', model: 'any' }

const withMessage = (content: string, said: string, finish: string | null = null): unknown => ({
  choices: [
    { index: 0, delta: { content }, message: { role: 'assistant', content: said }, finish_reason: finish },
  ],
})
const onlyMessage = (message: object, finish: string | null = null): unknown => ({
  choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: finish }],
})

export const SAID_TWICE: DocumentedAnswers = {
  'Perplexity: every chunk has the delta and all that was said so far': {
    ...perplexity,
    rows: [13],
    stream: events(
      withMessage('<think>', '<think>'),
      withMessage('\nHm', '<think>\nHm'),
      withMessage('</think>', '<think>\nHm</think>'),
      withMessage('\nYes.', '<think>\nHm</think>\nYes.'),
      withMessage('', '<think>\nHm</think>\nYes.', 'stop'),
    ),
    whole: completion({ content: '<think>\nHm</think>\nYes.' }, 'stop'),
    gives: { thought: 'Hm', text: 'Yes.', finish: 'stop' },
  },
  'a relay: messages in place of deltas, each with all that was said so far': {
    ...relay,
    rows: [10],
    stream: events(
      onlyMessage({ content: '', reasoning_content: 'Let me see' }),
      onlyMessage({ content: '', reasoning_content: 'Let me see, yes' }),
      onlyMessage({ content: 'The answer', reasoning_content: 'Let me see, yes' }),
      onlyMessage({ content: 'The answer is 4.', reasoning_content: 'Let me see, yes' }, 'stop'),
    ),
    gives: { thought: 'Let me see, yes', text: 'The answer is 4.', finish: 'stop' },
  },
  'a relay: messages in place of deltas, each with a piece': {
    ...relay,
    rows: [10],
    stream: events(
      onlyMessage({ content: 'ha' }),
      onlyMessage({ content: 'ha' }),
      onlyMessage({ content: '!' }, 'stop'),
    ),
    gives: { text: 'haha!', finish: 'stop' },
  },
  'a relay: messages in place of deltas, the last in doubt': {
    ...relay,
    rows: [10],
    stream: events(
      onlyMessage({ content: 'I' }),
      onlyMessage({ content: 'I do' }),
      onlyMessage({ content: 'I do.' }, 'stop'),
    ),
    gives: { text: 'I do.', finish: 'stop' },
  },
  'thoughts are streamed, the text comes in a whole message': {
    ...relay,
    rows: [11],
    stream: events(chunk({ reasoning_content: 'Hm' }), onlyMessage({ content: 'Yes.' }, 'stop')),
    gives: { thought: 'Hm', text: 'Yes.', finish: 'stop' },
  },
  'MiniMax: thoughts between tags and under their own name (can1357/oh-my-pi#2434)': {
    ...minimax,
    rows: [11, 13],
    stream: events(
      chunk({ content: '<think>\nThe user', reasoning_content: 'The user' }),
      chunk({ content: ' wants tea</think>', reasoning_content: ' wants tea' }),
      chunk({ content: '\n\nTea.' }, 'stop'),
    ),
    whole: completion(
      { content: '<think>\nThe user wants tea</think>\n\nTea.', reasoning_content: 'The user wants tea' },
      'stop',
    ),
    gives: { thought: 'The user wants tea', text: 'Tea.' },
  },
  'MiniMax: both, and cut in the middle of the closing tag': {
    ...minimax,
    rows: [11, 13],
    stream: events(
      chunk({ content: '<think>The user', reasoning_content: 'The user' }),
      chunk({ content: '</th' }, 'length'),
    ),
    gives: { thought: 'The user', text: '', finish: 'length' },
  },
  'MiniMax: the tag first, and thoughts in blocks beside': {
    ...minimax,
    rows: [11, 13],
    stream: events(
      chunk({ content: '<think>' }),
      chunk({
        content: 'The user',
        reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'The user' }],
      }),
      chunk({ content: ' wants', reasoning_details: [{ type: 'reasoning.text', index: 0, text: ' wants' }] }),
      chunk({ content: '</think>Tea.' }, 'stop'),
    ),
    gives: { thought: 'The user wants', text: 'Tea.' },
  },
  'OpenRouter: thoughts in blocks, and once more as text in deltas of their own': {
    baseUrl: 'https://openrouter.ai/api/v1',
    model: 'x/y',
    rows: [11],
    stream: events(
      chunk({ reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'Hm' }] }),
      chunk({ reasoning: 'Hm' }),
      chunk({
        reasoning: ', yes',
        reasoning_details: [{ type: 'reasoning.text', index: 0, text: ', yes' }],
      }),
      chunk(tools(piece(0, '{}', { id: 'a' }, 'one')), 'tool_calls'),
    ),
    gives: {
      thought: 'Hm, yes',
      calls: [call('a', 'one', {})],
      replay: [
        {
          raw: {
            reasoning: 'Hm, yes',
            reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'Hm, yes' }],
          },
        },
      ],
    },
  },
}
