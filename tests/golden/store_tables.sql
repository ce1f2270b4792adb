CREATE TABLE IF NOT EXISTS `events`
(
    `id` FixedString(16),
    `website_id` LowCardinality(String),
    `event_name` LowCardinality(String),
    `namespace` LowCardinality(String),
    `source` LowCardinality(String),
    `anonymous_id` String,
    `session_id` String,
    `profile_id` String,
    `url` String,
    `path` String,
    `title` String,
    `referrer` String,
    `country` LowCardinality(String),
    `region` LowCardinality(String),
    `city` LowCardinality(String),
    `browser_name` LowCardinality(String),
    `browser_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_type` LowCardinality(String),
    `language` LowCardinality(String),
    `timezone` LowCardinality(String),
    `screen_resolution` LowCardinality(String),
    `viewport_size` LowCardinality(String),
    `utm_source` LowCardinality(String),
    `utm_medium` LowCardinality(String),
    `utm_campaign` LowCardinality(String),
    `utm_term` LowCardinality(String),
    `utm_content` LowCardinality(String),
    `currency` LowCardinality(String),
    `time` DateTime64(3, 'UTC'),
    `received_at` DateTime64(3, 'UTC'),
    `is_bot` Bool,
    `time_on_page` Nullable(Float64),
    `scroll_depth` Nullable(Float64),
    `interaction_count` Nullable(Float64),
    `page_count` Nullable(Float64),
    `load_time` Nullable(Float64),
    `dom_ready_time` Nullable(Float64),
    `dom_interactive` Nullable(Float64),
    `ttfb` Nullable(Float64),
    `render_time` Nullable(Float64),
    `value` Nullable(Float64),
    `properties` String,
    `event_key` FixedString(8)
)
ENGINE = MergeTree
ORDER BY (website_id, time)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1, old_parts_lifetime = 480, merge_selector_base = 8, non_replicated_deduplication_window = 1000, default_compression_codec = 'ZSTD(1)';

CREATE TABLE IF NOT EXISTS `errors`
(
    `id` FixedString(16),
    `website_id` LowCardinality(String),
    `stack` String,
    `message` String,
    `level` LowCardinality(String),
    `error_type` LowCardinality(String),
    `filename` String,
    `path` String,
    `url` String,
    `anonymous_id` String,
    `session_id` String,
    `country` LowCardinality(String),
    `region` LowCardinality(String),
    `city` LowCardinality(String),
    `browser_name` LowCardinality(String),
    `browser_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_type` LowCardinality(String),
    `time` DateTime64(3, 'UTC'),
    `is_bot` Bool,
    `lineno` Nullable(Float64),
    `colno` Nullable(Float64),
    `event_key` FixedString(8)
)
ENGINE = MergeTree
ORDER BY (website_id, time)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1, old_parts_lifetime = 480, merge_selector_base = 8, non_replicated_deduplication_window = 1000, default_compression_codec = 'ZSTD(1)';

CREATE TABLE IF NOT EXISTS `performance`
(
    `id` FixedString(16),
    `website_id` LowCardinality(String),
    `metric_name` LowCardinality(String),
    `path` String,
    `url` String,
    `anonymous_id` String,
    `session_id` String,
    `country` LowCardinality(String),
    `region` LowCardinality(String),
    `city` LowCardinality(String),
    `browser_name` LowCardinality(String),
    `browser_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_type` LowCardinality(String),
    `time` DateTime64(3, 'UTC'),
    `is_bot` Bool,
    `metric_value` Nullable(Float64),
    `event_key` FixedString(8)
)
ENGINE = MergeTree
ORDER BY (website_id, time)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1, min_compressed_bytes_to_fsync_after_merge = 1, old_parts_lifetime = 480, merge_selector_base = 8, non_replicated_deduplication_window = 1000, default_compression_codec = 'ZSTD(1)';

ALTER TABLE `events` MODIFY SETTING lightweight_mutation_projection_mode = 'rebuild';

ALTER TABLE `events` ADD PROJECTION IF NOT EXISTS visits
(
    SELECT
        website_id,
        is_bot,
        intDiv(toUnixTimestamp64Milli(time), 86400000),
        toUInt32(multiply(bitOr(xxHash32(session_id), 1), notEquals(session_id, ''))),
        reinterpretAsUInt128(sipHash128(session_id)),
        session_id,
        toUInt32(multiply(bitOr(xxHash32(anonymous_id), 1), notEquals(anonymous_id, ''))),
        reinterpretAsUInt128(sipHash128(anonymous_id)),
        anonymous_id,
        country,
        region,
        city,
        browser_name,
        os_name,
        device_type,
        language,
        utm_source,
        utm_medium,
        utm_campaign,
        utm_term,
        utm_content,
        min(toUnixTimestamp64Milli(time)),
        max(toUnixTimestamp64Milli(time)),
        min(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id)))),
        max(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id)))),
        count(),
        countIf(in(event_name, ('screen_view', 'pageview', 'page_view'))),
        argMinIf(path, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(path, '')),
        argMaxIf(path, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(path, '')),
        argMinIf(referrer, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(referrer, ''))
    GROUP BY
        website_id,
        is_bot,
        intDiv(toUnixTimestamp64Milli(time), 86400000),
        toUInt32(multiply(bitOr(xxHash32(session_id), 1), notEquals(session_id, ''))),
        reinterpretAsUInt128(sipHash128(session_id)),
        session_id,
        toUInt32(multiply(bitOr(xxHash32(anonymous_id), 1), notEquals(anonymous_id, ''))),
        reinterpretAsUInt128(sipHash128(anonymous_id)),
        anonymous_id,
        country,
        region,
        city,
        browser_name,
        os_name,
        device_type,
        language,
        utm_source,
        utm_medium,
        utm_campaign,
        utm_term,
        utm_content
) WITH SETTINGS (index_granularity = 1024);

ALTER TABLE `events` MATERIALIZE PROJECTION visits SETTINGS mutations_sync = 2;

CREATE VIEW IF NOT EXISTS `visits` AS
SELECT
    `website_id` AS website_id,
    `is_bot` AS is_bot,
    `intDiv(toUnixTimestamp64Milli(time), 86400000)` AS day,
    `toUInt32(multiply(bitOr(xxHash32(session_id), 1), notEquals(session_id, '')))` AS session_mark,
    `reinterpretAsUInt128(sipHash128(session_id))` AS session_key,
    `session_id` AS session_id,
    `toUInt32(multiply(bitOr(xxHash32(anonymous_id), 1), notEquals(anonymous_id, '')))` AS person_mark,
    `reinterpretAsUInt128(sipHash128(anonymous_id))` AS person_key,
    `anonymous_id` AS anonymous_id,
    `country` AS country,
    `region` AS region,
    `city` AS city,
    `browser_name` AS browser_name,
    `os_name` AS os_name,
    `device_type` AS device_type,
    `language` AS language,
    `utm_source` AS utm_source,
    `utm_medium` AS utm_medium,
    `utm_campaign` AS utm_campaign,
    `utm_term` AS utm_term,
    `utm_content` AS utm_content,
    finalizeAggregation(`min(toUnixTimestamp64Milli(time))`) AS first_ms,
    finalizeAggregation(`max(toUnixTimestamp64Milli(time))`) AS last_ms,
    finalizeAggregation(`min(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))))`) AS first_place,
    finalizeAggregation(`max(bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))))`) AS last_place,
    finalizeAggregation(`count()`) AS event_count,
    finalizeAggregation(`countIf(in(event_name, ('screen_view', 'pageview', 'page_view')))`) AS page_views,
    `argMinIf(path, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(path, ''))` AS first_path,
    `argMaxIf(path, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(path, ''))` AS last_path,
    `argMinIf(referrer, bitOr(bitShiftLeft(toUInt256(toUnixTimestamp64Milli(time)), 128), reinterpretAsUInt128(reverse(id))), notEquals(referrer, ''))` AS first_referrer
FROM mergeTreeProjection(currentDatabase(), 'events', 'visits');

ALTER TABLE `errors` ADD COLUMN IF NOT EXISTS `fingerprint` String MATERIALIZED lower(hex(substring(SHA256(concat(error_type, '\n', replaceRegexpAll(message, '(?:[A-Za-z][A-Za-z0-9+.-]*://|\\bdata:)[^ \\t\\r\\n"\'<>)]+|"[^"\\n]*"|`[^`\\n]*`|\\B\'(?:[^\'\\n]|\'\\b)*\'\\B|\\x{201C}[^\\x{201D}\\n]*\\x{201D}|\\x{2018}[^\\x{2019}\\n]*\\x{2019}|[A-Za-z0-9_-]*[0-9][A-Za-z0-9_-]*(?:[.,:][0-9][A-Za-z0-9_-]*)*', '?'), '\n', extract(stack, '(?m)^[ \\t]*(at [^\\r\\n]+|[^@:\\r\\n]*@[^ \\t\\r\\n]+:[0-9]+)'))), 1, 8)));

ALTER TABLE `events` ADD COLUMN IF NOT EXISTS `visitor_key` UInt128 MATERIALIZED if(notEquals(anonymous_id, ''), reinterpretAsUInt128(sipHash128(anonymous_id)), toUInt128(0)), ADD COLUMN IF NOT EXISTS `session_key` UInt128 MATERIALIZED if(notEquals(session_id, ''), reinterpretAsUInt128(sipHash128(session_id)), toUInt128(0));

ALTER TABLE `events` MATERIALIZE COLUMN `visitor_key`, MATERIALIZE COLUMN `session_key` SETTINGS mutations_sync = 0;

ALTER TABLE `events` ADD COLUMN IF NOT EXISTS `has_simple_properties` UInt8 MATERIALIZED position(properties, '\\') + position(properties, ':{"') + position(properties, ',{"') + position(properties, '[{"') = 0;

ALTER TABLE `events` MATERIALIZE COLUMN `has_simple_properties` SETTINGS mutations_sync = 0;
