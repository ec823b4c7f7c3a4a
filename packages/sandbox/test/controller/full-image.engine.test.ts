/**
 * The larger image does what people ask an agent for, in a real sandbox without a network. Only in
 * a full run: the image is built, which takes minutes.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

import { test } from 'vitest'

import { campaign } from '../../../../test/campaign.ts'
import { deployed, shell } from '../support/docker-fixture.ts'

const BUILD = new URL('../../../../docker/build-images.sh', import.meta.url).pathname
const MINUTE = 60_000

const PLOT = `
import pandas, matplotlib.pyplot as plt
from PIL import Image
pandas.read_csv('data.csv').plot(x='month', y='sales', kind='bar')
plt.savefig('plot.png')
pandas.read_csv('data.csv').to_excel('data.xlsx')
print(Image.open('plot.png').size, pandas.read_excel('data.xlsx').shape)
`
const SCRIPT = `set -e
printf 'month,sales\\nJan,3\\nFeb,5\\n' >data.csv
python3 - 2>/dev/null <<'PY'${PLOT}PY
printf '# Title\\n' | pandoc -o a.docx && pandoc a.docx -t plain
echo 'digraph { a -> b }' | dot -Tpdf -o g.pdf && pdftotext g.pdf - | head -n 1
ffmpeg -loglevel error -f lavfi -i testsrc=duration=1:size=64x64:rate=5 v.mp4 && ffprobe -v error -show_entries stream=width -of csv=p=0 v.mp4`

const FULL_SANDBOX_IMAGE = 'sandlot/sandbox-full:latest'

if (campaign.full)
  deployed(
    'a plot of a CSV, a table, a document, a graph and a film',
    async ({ fixture, expect }) => {
      await promisify(execFile)(BUILD, ['--full'])
      const sandbox = await fixture.controller({ image: FULL_SANDBOX_IMAGE }).acquire('ann')
      const { code, output } = await shell(sandbox, SCRIPT)
      expect(output.trim().split('\n')).toEqual(['(640, 480) (2, 3)', 'Title', 'a', '64'])
      expect(code).toBe(0)
    },
    30 * MINUTE,
  )
else
  test.skip('a plot of a CSV, a table, a document, a graph and a film (skipped: only in a full run)', () =>
    undefined)
