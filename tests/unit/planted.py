"""Secrets made up at run time, so that no scanner finds any in this repository.

A template is text with places for random characters: ``{h32}`` is 32 hexadecimal digits. What
stands between ``«`` and ``»`` is the secret; without them it is the whole text.
"""

import random
import re
import string
from typing import Final, NamedTuple

_LOWER, _DIGITS = string.ascii_lowercase, string.digits
ALPHABETS: Final = {
    "a": string.ascii_letters + _DIGITS,
    "A": string.ascii_letters,
    "w": string.ascii_letters + _DIGITS + "_-",
    "h": "0123456789abcdef",
    "l": _LOWER + _DIGITS,
    "u": string.ascii_uppercase + _DIGITS,
    "b": string.ascii_letters + _DIGITS + "+/",
    "d": _DIGITS,
}
_PLACE: Final = re.compile(r"\{(\w)(\d+)\}")
_UUID: Final = "{h8}-{h4}-{h4}-{h4}-{h12}"

# of secrets with a shape of their own, the one part that changes is random
SHAPES: Final[tuple[tuple[str, str], ...]] = (
    ("anthropic-key", "sk-ant-api03-{w93}AA"),
    ("openrouter-key", "sk-or-v1-{h64}"),
    ("langfuse-key", "sk-lf-" + _UUID),
    ("openai-key", "sk-proj-{w120}"),
    ("openai-key", "sk-{a20}T3BlbkFJ{a20}"),
    ("google-api-key", "AIza{w35}"),
    ("hugging-face-token", "hf_{A34}"),
    ("hugging-face-token", "api_org_{A34}"),
    ("groq-key", "gsk_{a52}"),
    ("xai-key", "xai-{a80}"),
    ("perplexity-key", "pplx-{a48}"),
    ("replicate-token", "r8_{a37}"),
    ("nvidia-key", "nvapi-{w64}"),
    ("pinecone-key", "pcsk_{a6}_{a64}"),
    ("langsmith-key", "lsv2_pt_{h32}_{h10}"),
    ("tavily-key", "tvly-{a32}"),
    ("firecrawl-key", "fc-{h32}"),
    ("jina-key", "jina_{a60}"),
    ("aws-access-key-id", "AKIA{u16}"),
    ("aws-access-key-id", "ASIA{u16}"),
    ("aws-bedrock-key", "ABSK{b120}="),
    ("google-oauth-token", "ya29.{w120}"),
    ("google-oauth-refresh-token", "1//0{w60}"),
    ("google-oauth-secret", "GOCSPX-{w28}"),
    ("azure-client-secret", "{a3}8Q~{w34}"),
    ("azure-devops-token", "{a76}AZDO{a4}"),
    ("azure-ai-key", "{a52}JQQJ99{a26}"),
    ("azure-functions-key", "{w44}AzFu{w5}Q=="),
    ("alibaba-key-id", "LTAI{a20}"),
    ("digitalocean-token", "dop_v1_{h64}"),
    ("yandex-key", "AQVN{w36}"),
    ("cloudflare-key", "cfut_{a48}"),
    ("cloudflare-origin-key", "v1.0-{h24}-{h146}"),
    ("github-token", "ghp_{a36}"),
    ("github-oauth-token", "gho_{a36}"),
    ("github-app-token", "ghs_{a36}"),
    ("github-refresh-token", "ghr_{a76}"),
    ("github-fine-grained-token", "github_pat_{a22}_{a59}"),
    ("gitlab-token", "glpat-{w20}"),
    ("gitlab-token", "gldt-{w20}"),
    ("gitlab-runner-token", "GR1348941{w20}"),
    ("atlassian-token", "ATATT3{w180}={h8}"),
    ("bitbucket-token", "ATBB{a32}"),
    ("npm-token", "npm_{a36}"),
    ("pypi-token", "pypi-AgEIcHlwaS5vcmc{w80}"),
    ("rubygems-key", "rubygems_{h48}"),
    ("crates-token", "cio{a32}"),
    ("nuget-key", "oy2{l43}"),
    ("clojars-token", "CLOJARS_{l60}"),
    ("docker-hub-token", "dckr_pat_{w27}"),
    ("artifactory-token", "AKCp{a69}"),
    ("buildkite-token", "bkua_{h40}"),
    ("circleci-token", "CCIPAT_{a22}_{h40}"),
    ("sonar-token", "squ_{h40}"),
    ("sourcegraph-token", "sgp_{h16}_{h40}"),
    ("terraform-cloud-token", "{a14}.atlasv1.{w67}"),
    ("pulumi-token", "pul-{h40}"),
    ("infracost-key", "ico-{a32}"),
    ("prefect-key", "pnu_{a36}"),
    ("harness-token", "pat.{w22}.{h24}.{a20}"),
    ("octopus-key", "API-{u26}"),
    ("openshift-token", "sha256~{w43}"),
    ("heroku-key", "HRKU-AA{w58}"),
    ("fly-token", "fm2_{b200}"),
    ("fly-token", "fo1_{w43}"),
    ("vercel-token", "vcp_{a48}"),
    ("netlify-token", "nfp_{a36}"),
    ("supabase-key", "sbp_{h40}"),
    ("supabase-key", "sb_secret_{w31}"),
    ("planetscale-token", "pscale_tkn_{w43}"),
    ("neon-key", "napi_{l64}"),
    ("render-key", "rnd_{a32}"),
    ("databricks-token", "dapi{h32}"),
    ("vault-token", "hvs.{w92}"),
    ("doppler-token", "dp.pt.{a43}"),
    ("1password-token", "ops_eyJ{b240}"),
    ("1password-secret-key", "A3-{u6}-{u6}-{u5}-{u5}-{u5}"),
    ("tailscale-key", "tskey-auth-{a16}-{a32}"),
    ("age-secret-key", "AGE-SECRET-KEY-1{u58}"),
    ("new-relic-key", "NRAK-{u27}"),
    ("new-relic-license", "{h36}NRAL"),
    ("sentry-token", "sntryu_{h64}"),
    ("grafana-token", "glsa_{a32}_{h8}"),
    ("grafana-token", "glc_{b80}="),
    ("grafana-key", "eyJrIjoi{a80}="),
    ("dynatrace-token", "dt0c01.{u24}.{u64}"),
    ("posthog-key", "phx_{a43}"),
    ("launchdarkly-key", "sdk-" + _UUID),
    ("slack-token", "xoxb-{d12}-{d12}-{a24}"),
    ("slack-token", "xoxe.xoxp-1-{a160}"),
    ("slack-app-token", "xapp-1-{u11}-{d13}-{h64}"),
    ("slack-webhook", "https://hooks.slack.com/services/«T{u8}/B{u8}/{a24}»"),
    ("discord-webhook", "https://discord.com/api/webhooks/{d18}/«{w68}»"),
    (
        "teams-webhook",
        f"https://acme.webhook.office.com/webhookb2/«{_UUID}@{_UUID}/IncomingWebhook/{{h32}}/{_UUID}»",
    ),
    ("zapier-webhook", "https://hooks.zapier.com/hooks/catch/«{d7}/{l7}»"),
    ("telegram-bot-token", "{d10}:«AA{w33}»"),
    ("twilio-key", "SK{h32}"),
    ("sendgrid-key", "SG.{w22}.{w43}"),
    ("mailgun-key", "key-{h32}"),
    ("mailchimp-key", "{h32}-us14"),
    ("brevo-key", "xkeysib-{h64}-{a16}"),
    ("resend-key", "re_{a8}_{a24}"),
    ("stripe-key", "sk_live_{a24}"),
    ("stripe-key", "rk_test_{a99}"),
    ("webhook-secret", "whsec_{b32}"),
    ("elevenlabs-key", "sk_{h48}"),
    ("shopify-token", "shpat_{h32}"),
    ("square-token", "sq0csp-{w43}"),
    ("square-token", "EAAA{w60}"),
    ("facebook-token", "EAAG{a160}"),
    ("braintree-token", "access_token$production${l16}${h32}"),
    ("shippo-token", "shippo_live_{h40}"),
    ("duffel-token", "duffel_live_{w43}"),
    ("easypost-key", "EZAK{a54}"),
    ("flutterwave-key", "FLWSECK-{l32}-X"),
    ("plaid-token", "access-production-" + _UUID),
    ("linear-key", "lin_api_{a40}"),
    ("notion-token", "ntn_{d11}{a35}"),
    ("notion-token", "secret_{a43}"),
    ("airtable-token", "pat{a14}.{h64}"),
    ("postman-key", "PMAK-{h24}-{h34}"),
    ("figma-token", "figd_{w40}"),
    ("contentful-token", "CFPAT-{w43}"),
    ("typeform-token", "tfp_{w59}"),
    ("readme-key", "rdme_{l70}"),
    ("hubspot-token", "pat-na1-" + _UUID),
    ("dropbox-token", "sl.u.{w140}"),
    ("adafruit-key", "aio_{a28}"),
    ("mapbox-token", "sk.eyJ1{w80}.{w22}"),
    ("jwt", "eyJhbGciOiJIUzI1NiJ9.eyJ{a60}.{w43}"),
)

# of secrets that are known by their surroundings, the surroundings too
CONTEXTS: Final[tuple[tuple[str, str], ...]] = (
    ("aws-secret-key", 'aws_secret_access_key = "«{b40}»"'),
    ("aws-secret-key", "AWS secret access key: «{b40}»"),
    ("aws-session-token", "AWS_SESSION_TOKEN=«{b356}=»"),
    ("aws-signature", "https://b.s3.amazonaws.com/k?X-Amz-Signature=«{h64}»"),
    ("google-signature", "https://storage.googleapis.com/b/k?X-Goog-Signature=«{h512}»"),
    ("azure-sas", "https://a.blob.core.windows.net/c?sv=2022-11-02&sig=«{a43}%3D»"),
    ("azure-storage-key", "AccountName=acme;AccountKey=«{b86}==»;EndpointSuffix=x"),
    ("azure-shared-key", "Endpoint=sb://acme/;SharedAccessKey=«{b43}=»"),
    ("gcp-private-key-id", '"private_key_id": "«{h40}»",'),
    ("cloudflare-token", 'CLOUDFLARE_API_TOKEN="«{w40}»"'),
    ("datadog-key", "DD_API_KEY=«{h32}»"),
    ("datadog-key", 'datadog.initialize(app_key="«{h40}»")'),
    ("twilio-token", "twilio_auth_token: «{h32}»"),
    ("discord-token", "DISCORD_BOT=«M{a25}.{w6}.{w38}»"),
    ("paypal-secret", 'PAYPAL_CLIENT_SECRET = "«E{w79}»"'),
    ("okta-token", "OKTA_API_TOKEN=«00{w40}»"),
    ("heroku-key", f"HEROKU_API_KEY=«{_UUID}»"),
    ("vercel-token", "VERCEL_TOKEN=«{a24}»"),
    ("netlify-token", "NETLIFY_AUTH_TOKEN=«{w43}»"),
    ("mailgun-key", "MAILGUN_API_KEY=«{h32}-{h8}-{h8}»"),
    ("snyk-token", f"SNYK_TOKEN=«{_UUID}»"),
    ("codecov-token", f"CODECOV_TOKEN: «{_UUID}»"),
    ("wandb-key", "WANDB_API_KEY=«{h40}»"),
    ("bearer-token", 'curl -H "Authorization: Bearer «{w40}»" https://api.acme.io'),
    ("authorization-header", '"Authorization": "token «{a40}»"'),
    ("url-password", "postgres://app:«{a12}!»@db.acme.io:5432/app"),
    ("url-password", "redis://:«{a20}»@cache:6379/0"),
    ("url-token", "git clone https://«{a40}»@git.acme.io/app.git"),
    ("curl-user", "curl -s -u admin:«{a10}» https://acme.io/x"),
    ("sshpass", "sshpass -p '«{a10}»' ssh root@box"),
    ("mysql-password", "mysql -u root -p«{a14}» app"),
    ("docker-login", "docker login -u bot -p «{a14}» registry.acme.io"),
    ("netrc-password", "machine acme.io login bob password «{a12}»"),
    ("command-flag", "deploy --api-key «{a24}» --region eu"),
    ("command-flag", 'psqlx --password="«{a10}#1»"'),
    ("password", 'password = "«{a10}7»"'),
    ("password", "DB_PASSWORD=«{a5}&{a5}4»"),
    ("password", "      POSTGRES_PASSWORD: «{a11}9»"),
    ("password", '{\\"user\\": \\"app\\", \\"password\\": \\"«{a12}3»\\"}'),
    ("password", "Server=db;Database=app;User Id=sa;Password=«{a12}5»;Encrypt=true"),
    ("password", "The database password is «{a6}#{a6}2»"),
    ("password", "<password>«{a12}1»</password>"),
    ("password", 'client.login("password", "«{a9}%8»")'),
    ("api-key", 'api_key = "«{a32}»"'),
    ("api-key", "export ACME_API_KEY=«{h32}»"),
    ("api-key", "const token: string = '«{w40}»';"),
    ("api-key", '{"client_secret": "«{a40}»"}'),
    ("api-key", "https://acme.io/v1?access_token=«{a32}»&page=2"),
    ("api-key", "X-Api-Key: «{a40}»"),
    ("api-key", "secretKey: «{b43}=»"),
)
_KEY_BODY: Final = "{b64}\n{b64}\n{b64}\n{b40}=="
BLOCKS: Final[tuple[tuple[str, str], ...]] = tuple(
    ("private-key", f"-----BEGIN {kind}-----\n{_KEY_BODY}\n-----END {kind}-----")
    for kind in (
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    )
)
ALL: Final = (*SHAPES, *CONTEXTS, *BLOCKS)


class Planted(NamedTuple):
    """A text, and the secret in it."""

    rule: str
    text: str
    secret: str


def plant(rule: str, template: str, rng: random.Random) -> Planted:
    """A secret made from a template."""

    def fill(place: "re.Match[str]") -> str:
        return "".join(rng.choices(ALPHABETS[place[1]], k=int(place[2])))

    text = _PLACE.sub(fill, template)
    if "«" not in text:
        return Planted(rule, text, text)
    before, _, rest = text.partition("«")
    secret, _, after = rest.partition("»")
    return Planted(rule, before + secret + after, secret)


def too_short(template: str) -> str:
    """The template with next to nothing in its places: no secret any more."""
    return _PLACE.sub("x1", template).replace("«", "").replace("»", "")


def masked(template: str) -> str:
    """The template with the same letter in all its places: no secret any more."""
    return _PLACE.sub(lambda place: "x" * int(place[2]), template).replace("«", "").replace("»", "")
