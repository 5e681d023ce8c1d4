r"""Secrets that are known by their own shape: a prefix that the issuer gives them. Pure.

Every pattern begins at a keyword (or ``back`` bytes before one). None can backtrack far: what
repeats without a limit comes last, or starts only where no character of its own kind stands
before it, so that a text is never read twice for one rule.
"""

from typing import Final

from memoryd.domain.rule import Rule

_UUID: Final = rb"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
# no word character before; an escaped line break, as in JSON within JSON, is no word
_EDGE: Final = rb"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"


def _rule(rule_id: str, pattern: bytes, *keywords: bytes, bits: float = 3.0, back: int = 0) -> Rule:
    return Rule(rule_id, pattern, keywords, bits, back)


FORMATS: Final[tuple[Rule, ...]] = (
    # models and what belongs to them
    _rule("anthropic-key", rb"sk-ant-[\w-]{16,}", b"sk-ant-"),
    _rule("openrouter-key", rb"sk-or-(?:v\d-)?[0-9a-zA-Z]{32,}", b"sk-or-"),
    _rule("langfuse-key", rb"sk-lf-" + _UUID, b"sk-lf-"),
    _rule(
        "openai-key",
        rb"sk-(?:proj|svcacct|admin|service|None)-[\w-]{20,}",
        b"sk-proj-",
        b"sk-svcacct-",
        b"sk-admin-",
        b"sk-service-",
        b"sk-none-",
    ),
    _rule("openai-key", _EDGE + rb"sk-[A-Za-z0-9]{20,}", b"sk-", bits=3.3),
    _rule("google-api-key", rb"AIza[\w-]{35}", b"aiza"),
    _rule("hugging-face-token", _EDGE + rb"hf_[A-Za-z0-9]{30,}", b"hf_"),
    _rule("hugging-face-token", rb"api_org_[A-Za-z]{30,}", b"api_org_"),
    _rule("groq-key", rb"gsk_[A-Za-z0-9]{40,}", b"gsk_"),
    _rule("xai-key", rb"xai-[A-Za-z0-9]{60,}", b"xai-"),
    _rule("perplexity-key", rb"pplx-[A-Za-z0-9]{32,}", b"pplx-"),
    _rule("replicate-token", _EDGE + rb"r8_[A-Za-z0-9]{30,}", b"r8_"),
    _rule("nvidia-key", rb"nvapi-[\w-]{40,}", b"nvapi-"),
    _rule("pinecone-key", rb"pcsk_\w{40,}", b"pcsk_"),
    _rule("langsmith-key", rb"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}", b"lsv2_"),
    _rule("tavily-key", rb"tvly-[\w-]{20,}", b"tvly-"),
    _rule("firecrawl-key", _EDGE + rb"fc-[0-9a-f]{32}", b"fc-"),
    _rule("jina-key", rb"jina_[\w-]{40,}", b"jina_"),
    # clouds
    _rule(
        "aws-access-key-id",
        rb"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        b"akia",
        b"asia",
        b"abia",
        b"acca",
    ),
    _rule("aws-bedrock-key", rb"ABSK[A-Za-z0-9+/]{80,}={0,2}", b"absk"),
    _rule("google-oauth-token", rb"ya29\.[\w-]{20,}", b"ya29."),
    _rule("google-oauth-refresh-token", rb"1//0[\w-]{38,}", b"1//0"),
    _rule("google-oauth-secret", rb"GOCSPX-[\w-]{20,}", b"gocspx-"),
    _rule(
        "azure-client-secret",
        rb"(?:(?<![\w~.-])|(?<=\\[nrt]))[\w~.]{3}\dQ~[\w~.-]{31,34}",
        b"q~",
        back=4,
    ),
    _rule("azure-devops-token", rb"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}", b"azdo", back=76),
    _rule("azure-ai-key", rb"[A-Za-z0-9]{52}JQQJ9[A-Za-z0-9]{27}", b"jqqj9", back=52),
    _rule("azure-functions-key", rb"[\w-]{44}AzFu[\w-]{5}[AQgw]==", b"azfu", back=44),
    _rule("alibaba-key-id", _EDGE + rb"LTAI[A-Za-z0-9]{17,26}", b"ltai"),
    _rule("digitalocean-token", rb"do[opr]_v1_[0-9a-f]{64}", b"doo_v1_", b"dop_v1_", b"dor_v1_"),
    _rule("yandex-key", _EDGE + rb"(?:AQVN[\w-]{35,38}|YC[\w-]{38})(?![\w-])", b"aqvn", b"yc"),
    _rule("cloudflare-key", _EDGE + rb"cf(?:k|ut|at)_[\w-]{40,}", b"cfk_", b"cfut_", b"cfat_"),
    _rule("cloudflare-origin-key", rb"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}", b"v1.0-"),
    # code hosts and what builds
    _rule("github-token", rb"ghp_[A-Za-z0-9]{30,}", b"ghp_"),
    _rule("github-oauth-token", rb"gho_[A-Za-z0-9]{30,}", b"gho_"),
    _rule("github-app-token", rb"gh[us]_[A-Za-z0-9_]{30,}", b"ghu_", b"ghs_"),
    _rule("github-refresh-token", rb"ghr_[A-Za-z0-9]{30,}", b"ghr_"),
    _rule("github-fine-grained-token", rb"github_pat_\w{22,}", b"github_pat_"),
    _rule(
        "gitlab-token",
        rb"gl(?:pat|ptt|dt|rt|rtr|cbt|ft|imt|agent|oas|soat|ffct|wt)-[\w-]{16,}"
        rb"(?:\.[\w-]{2,20}){0,3}",
        *(
            b"gl%s-" % kind
            for kind in (
                *(b"pat", b"ptt", b"dt", b"rt", b"rtr", b"cbt", b"ft", b"imt"),
                *(b"agent", b"oas", b"soat", b"ffct", b"wt"),
            )
        ),
    ),
    _rule("gitlab-runner-token", rb"GR1348941[\w-]{20}", b"gr1348941"),
    _rule("atlassian-token", rb"AT[AC]TT3[\w=+/-]{40,}", b"atatt3", b"atctt3"),
    _rule("bitbucket-token", _EDGE + rb"ATBB[A-Za-z0-9]{28,}", b"atbb"),
    _rule("npm-token", rb"npm_[A-Za-z0-9]{36}", b"npm_"),
    _rule("pypi-token", rb"pypi-[\w-]{50,}", b"pypi-"),
    _rule("rubygems-key", rb"rubygems_[0-9a-f]{48}", b"rubygems_"),
    _rule("crates-token", _EDGE + rb"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])", b"cio", bits=3.5),
    _rule("nuget-key", _EDGE + rb"oy2[a-z0-9]{43}", b"oy2"),
    _rule("clojars-token", rb"CLOJARS_[a-z0-9]{60}", b"clojars_"),
    _rule("docker-hub-token", rb"dckr_[po]at_[\w-]{20,}", b"dckr_pat_", b"dckr_oat_"),
    _rule("artifactory-token", _EDGE + rb"(?:AKCp|cmVmdGtu)[A-Za-z0-9]{50,}", b"akcp", b"cmvmdgtu"),
    _rule("buildkite-token", rb"bk[a-z]{1,3}_[0-9a-f]{40}", b"bkua_", b"bkaj_", b"bkct_", b"bkpt_"),
    _rule("circleci-token", rb"CCI(?:PAT|PRJ)_\w{40,}", b"ccipat_", b"cciprj_"),
    _rule("sonar-token", rb"sq[upa]_[0-9a-f]{40}", b"squ_", b"sqp_", b"sqa_"),
    _rule("sourcegraph-token", rb"sgp_(?:[0-9a-z]{5,16}_)?[0-9a-f]{40}", b"sgp_"),
    _rule("terraform-cloud-token", rb"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}", b".atlasv1.", back=14),
    _rule("pulumi-token", rb"pul-[0-9a-f]{40}", b"pul-"),
    _rule("infracost-key", rb"ico-[A-Za-z0-9]{32}", b"ico-"),
    _rule("prefect-key", rb"pnu_[A-Za-z0-9]{36}", b"pnu_"),
    _rule("harness-token", rb"[ps]at\.[\w-]{22}\.[0-9a-f]{24}\.[\w-]{20}", b"pat.", b"sat."),
    _rule("octopus-key", _EDGE + rb"API-[A-Z0-9]{25,26}(?![\w-])", b"api-", bits=3.3),
    _rule("openshift-token", rb"sha256~[\w-]{43}", b"sha256~"),
    # hosting and data
    _rule("heroku-key", rb"HRKU-[\w-]{36,}", b"hrku-"),
    _rule("fly-token", rb"fm[12][ar]?_[\w+/=-]{60,}", b"fm1_", b"fm1a_", b"fm1r_", b"fm2_"),
    _rule("fly-token", rb"fo1_[\w-]{43}", b"fo1_"),
    _rule("vercel-token", rb"vc[pairk]_[A-Za-z0-9]{24,}", *(b"vc%c_" % c for c in b"pairk")),
    _rule("netlify-token", rb"nf[pcoub]_[A-Za-z0-9]{36,}", *(b"nf%c_" % c for c in b"pcoub")),
    _rule(
        "supabase-key", rb"sbp_(?:v0_)?[0-9a-f]{40}|sb_secret_[\w-]{20,}", b"sbp_", b"sb_secret_"
    ),
    _rule("planetscale-token", rb"pscale_(?:pw|tkn|oauth)_[\w.=-]{30,}", b"pscale_"),
    _rule("neon-key", rb"napi_[a-z0-9]{40,}", b"napi_"),
    _rule("render-key", _EDGE + rb"rnd_[A-Za-z0-9]{28,}", b"rnd_"),
    _rule("databricks-token", _EDGE + rb"dapi[0-9a-f]{32}(?:-\d)?", b"dapi"),
    _rule("vault-token", rb"hv[sbr]\.[\w-]{24,}", b"hvs.", b"hvb.", b"hvr."),
    _rule("doppler-token", rb"dp\.[a-z]{2,5}\.[\w.-]{40,}", b"dp."),
    _rule("1password-token", rb"ops_eyJ[\w=+/-]{80,}", b"ops_eyj"),
    _rule("1password-secret-key", rb"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,6}-){2,4}[A-Z0-9]{5,6}", b"a3-"),
    _rule("tailscale-key", rb"tskey-[a-z]+-\w{8,}(?:-\w+)?", b"tskey-"),
    _rule("age-secret-key", rb"(?i)AGE-SECRET-KEY-1[0-9a-z]{50,}", b"age-secret-key-1"),
    # watching and measuring
    _rule(
        "new-relic-key",
        rb"NR(?:AK|II|JS|RA|BR|SP|AL)-[\w-]{19,}",
        *(b"nr%s-" % kind for kind in (b"ak", b"ii", b"js", b"ra", b"br", b"sp", b"al")),
    ),
    _rule("new-relic-license", rb"[0-9a-f]{36}NRAL", b"nral", back=36),
    _rule("sentry-token", rb"sntry[su]_[\w=+/-]{40,}", b"sntrys_", b"sntryu_"),
    _rule(
        "grafana-token",
        rb"gl(?:c_[A-Za-z0-9+/]{32,}={0,2}|sa_\w{32}_[0-9a-f]{8})",
        b"glc_",
        b"glsa_",
    ),
    _rule("grafana-key", rb"eyJrIjoi[A-Za-z0-9+/]{60,}={0,2}", b"eyjrijoi"),
    _rule("dynatrace-token", rb"dt0[a-z]\d{2}\.[A-Z0-9]{24}\.[A-Z0-9]{64}", b"dt0"),
    _rule("posthog-key", rb"phx_[A-Za-z0-9]{36,}", b"phx_"),
    _rule("launchdarkly-key", _EDGE + rb"(?:sdk|api)-" + _UUID, b"sdk-", b"api-"),
    # talking and mailing
    _rule("slack-token", rb"xox[a-z][-.](?:xox[a-z]-)?[\w-]{10,}", b"xox", bits=2.5),
    _rule("slack-app-token", rb"xapp-\d-[\w-]{20,}", b"xapp-"),
    _rule(
        "slack-webhook",
        rb"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/]{30,})",
        b"hooks.slack.com/",
    ),
    _rule(
        "discord-webhook",
        rb"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{15,}/([\w-]{40,})",
        b"discord.com/",
        b"discordapp.com/",
    ),
    _rule(
        "teams-webhook",
        rb"webhook\.office\.com/webhookb2/([\w@-]{70,}/IncomingWebhook/[\w/-]{40,})",
        b"webhook.office.com/",
    ),
    _rule(
        "zapier-webhook",
        rb"hooks\.zapier\.com/hooks/catch/(\d+/\w{5,})",
        b"hooks.zapier.com/",
        bits=2.0,
    ),
    _rule("telegram-bot-token", rb"(?<=\d{7}):(A[\w-]{34})(?![\w-])", b":a", bits=3.5),
    _rule("twilio-key", _EDGE + rb"SK[0-9a-f]{32}(?![A-Za-z0-9])", b"sk"),
    _rule("sendgrid-key", rb"SG\.[\w-]{20,24}\.[\w-]{39,50}", b"sg."),
    _rule("mailgun-key", _EDGE + rb"key-[0-9a-f]{32}", b"key-"),
    _rule("mailchimp-key", rb"(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}\b", b"-us", back=32),
    _rule(
        "brevo-key", rb"x(?:keysib|smtpsib)-[0-9a-f]{64}-[A-Za-z0-9]{16}", b"xkeysib-", b"xsmtpsib-"
    ),
    _rule("resend-key", _EDGE + rb"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}", b"re_"),
    # paying and selling
    _rule(
        "stripe-key",
        rb"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}",
        *(b"%ck_%s_" % (c, mode) for c in b"sr" for mode in (b"live", b"test", b"prod")),
    ),
    _rule("webhook-secret", rb"whsec_[A-Za-z0-9+/=]{24,}", b"whsec_"),
    _rule("elevenlabs-key", _EDGE + rb"sk_[0-9a-f]{40,}", b"sk_"),
    _rule(
        "shopify-token",
        rb"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
        *(b"shp%s_" % kind for kind in (b"at", b"ca", b"pa", b"ss")),
    ),
    _rule("square-token", rb"sq0[a-z]{3}-[\w-]{22,}", b"sq0"),
    _rule("square-token", _EDGE + rb"EAAA[\w-]{60}(?![\w-])", b"eaaa"),
    _rule("facebook-token", _EDGE + rb"EAA[A-Za-z0-9]{80,}", b"eaa"),
    _rule("braintree-token", rb"access_token\$\w+\$[0-9a-z]{16}\$[0-9a-f]{32}", b"access_token$"),
    _rule("shippo-token", rb"shippo_(?:live|test)_[0-9a-fA-F]{40}", b"shippo_"),
    _rule("duffel-token", rb"duffel_(?:test|live)_[\w-]{40,}", b"duffel_"),
    _rule("easypost-key", rb"EZ[AT]K[A-Za-z0-9]{54}", b"ezak", b"eztk"),
    _rule("flutterwave-key", rb"FLWSECK(?:_TEST)?-[0-9a-zA-Z]{12,}-X", b"flwseck"),
    _rule("plaid-token", rb"access-(?:sandbox|development|production)-" + _UUID, b"access-"),
    # planning, drawing, writing
    _rule("linear-key", rb"lin_(?:api|oauth)_[A-Za-z0-9]{32,}", b"lin_api_", b"lin_oauth_"),
    _rule("notion-token", rb"ntn_[A-Za-z0-9]{40,}", b"ntn_"),
    _rule("notion-token", _EDGE + rb"secret_[A-Za-z0-9]{43}", b"secret_"),
    _rule("airtable-token", _EDGE + rb"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", b"pat"),
    _rule("postman-key", rb"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", b"pmak-"),
    _rule("figma-token", rb"fig[dour]_[\w-]{32,}", b"figd_", b"figo_", b"figu_", b"figr_"),
    _rule("contentful-token", rb"CFPAT-[\w-]{40,}", b"cfpat-"),
    _rule("typeform-token", rb"tfp_[\w.=-]{40,}", b"tfp_"),
    _rule("readme-key", rb"rdme_[a-z0-9]{60,}", b"rdme_"),
    _rule(
        "hubspot-token", _EDGE + rb"pat-(?:na|eu|ap)\d-" + _UUID, b"pat-na", b"pat-eu", b"pat-ap"
    ),
    _rule("dropbox-token", _EDGE + rb"sl\.(?:u\.)?[\w-]{60,}", b"sl."),
    _rule("adafruit-key", _EDGE + rb"aio_[A-Za-z0-9]{28}", b"aio_"),
    _rule("mapbox-token", _EDGE + rb"sk\.eyJ[\w-]{40,}\.[\w-]{20,}", b"sk.eyj"),
    # signed statements
    _rule(
        "jwt",
        _EDGE + rb"ey[IJ][\w-]{8,2000}\.ey[IJ][\w-]{8,20000}\.[\w-]{10,}",
        b"eyj",
        b"eyi",
        bits=3.5,
    ),
)
